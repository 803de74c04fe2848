#include "chain_parameters.hpp"

#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/ops/elementwise.hpp>

#include "framework_allocator.hpp"
#include "names.hpp"
#include "tensor_look.hpp"

namespace pumice::python {

namespace {

constexpr std::size_t kRunning = 3;   // a link

}   // namespace

Items::Items(nb::handle tuple, const char* name) : tuple_(tuple) {
  PUMICE_ENSURES(PyTuple_Check(tuple.ptr()), name, " are no tuple");
}

Items::Items(nb::handle tuple, std::size_t count, const char* name) : Items(tuple, name) {
  PUMICE_ENSURES(size() == count, name, " are ", size(), ", not ", count);
}

std::vector<Parameters> parameters_in(const Call& call, nb::handle tuple, std::size_t links) {
  const Items items(tuple, kParameters * links, "parameters");
  std::vector<Parameters> all;
  for (std::size_t i = 0; i < links; ++i) {
    const auto view = [&](std::size_t index, const char* name) {   // types_fit has seen signs
      return view_of(items[kParameters * i + index], name, call.stream());
    };
    all.push_back({.weight = view(0, "weight"),
                   .scale = view(1, "weight of the norm"),
                   .shift = view(2, "bias of the norm")});
    PUMICE_EXPECTS(all.back().weight.rank() == 3, "weight has shape ",
                   to_string(all.back().weight.shape()),
                   ": give [offsets, input channels, output channels]");
  }
  return all;
}

std::vector<Running> running_in(const Call& call, nb::handle tuple, std::size_t links) {
  const Items items(tuple, kRunning * links, "running statistics");
  std::vector<Running> all;
  for (std::size_t i = 0; i < links; ++i) {
    all.push_back({mutable_view_of(items[kRunning * i], "running_mean", call.stream()),
                   mutable_view_of(items[kRunning * i + 1], "running_var", call.stream()),
                   single_view_of(items[kRunning * i + 2], "num_batches_tracked", call.stream())});
  }
  return all;
}

bool types_fit(nb::handle features, nb::handle other, nb::handle parameters, nb::handle running,
               bool rounds) {
  const Items learned(parameters, "parameters");
  const Items statistics(running, "running statistics");
  try {
    const TensorLook x = look_at(features, "features");
    const bool on_device = x.device_index >= 0;
    const bool is_double = x.dtype == DType::f64;
    if (!is_floating(x.dtype) || (is_double && on_device)) return false;
    if (!other.is_none() && look_at(other, "residual").dtype != x.dtype) return false;
    const DType sums = is_double ? DType::f64 : DType::f32;
    // Two of a norm: of the type of sums, or of the features' type, as after model.half().
    const auto pair_fits = [&](nb::handle first, nb::handle second) {
      const TensorLook one = look_at(first, "a parameter");
      const TensorLook two = look_at(second, "a parameter");
      return (one.dtype == sums || one.dtype == x.dtype) && two.dtype == one.dtype &&
             one.is_contiguous && two.is_contiguous && !is_negated_once(first) && !is_negated_once(second);
    };
    for (std::size_t i = 0; i < learned.size(); i += kParameters) {
      const TensorLook weight = look_at(learned[i], "a parameter");
      const bool fits = weight.dtype == x.dtype || (on_device && rounds && weight.dtype == sums);
      if (!fits || !weight.is_contiguous || is_negated_once(learned[i]) ||
          !pair_fits(learned[i + 1], learned[i + 2]))
        return false;
    }
    for (std::size_t i = 0; i < statistics.size(); i += kRunning) {
      if (!pair_fits(statistics[i], statistics[i + 1])) return false;
    }
  } catch (const UserError&) {   // a type that no kernel takes
    return false;
  }
  return true;
}

MadeOf::MadeOf(nb::handle parameters, nb::handle running) {
  const Items learned(parameters, "parameters");
  for (std::size_t i = 0; i < learned.size(); ++i)
    add(learned[i]);
  const Items statistics(running, "running statistics");
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    const bool is_number_of_batches = i % kRunning == kRunning - 1;
    if (!is_number_of_batches) add(statistics[i]);
  }
}

void MadeOf::add(nb::handle tensor) {
  // Changes of tensors of inference mode nobody counts.
  const bool is_counted = call_method(tensor, names().is_inference).ptr() == Py_False;
  const std::int64_t version =
      is_counted ? nb::cast<std::int64_t>(attribute(tensor, names().version)) : 0;
  parts_.push_back({tensor.ptr(), look_at(tensor, "a parameter").data, version});
}

PackedLinks::PackedLinks(TileWeightUses& uses, const std::vector<Parameters>& parameters,
                         StreamView stream)
    : uses_(uses), packed_(parameters.size()) {
  std::vector<ConstTensorView> weights;
  for (const Parameters& of_link : parameters)
    weights.push_back(of_link.weight);
  uses_.pack(weights, all(), stream);
}

std::vector<TileWeights*> PackedLinks::all() {
  std::vector<TileWeights*> result;
  for (TileWeights& one : packed_)
    result.push_back(&one);
  return result;
}

ParameterGradients::ParameterGradients(Call& call, nb::handle like, nb::handle parameters_given,
                                       const std::vector<Parameters>& parameters)
    : call_(call) {
  const Items items(parameters_given, kParameters * parameters.size(), "parameters");
  std::vector<ConstTensorView> all;
  for (const Parameters& of_link : parameters)
    all.insert(all.end(), {of_link.weight, of_link.scale, of_link.shift});
  places_.resize(all.size());
  std::vector<Piece*> piece_of(all.size(), nullptr);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ConstTensorView& parameter = all[i];
    const bool is_wide = parameter.dtype() == DType::f32 || parameter.dtype() == DType::f64;
    const bool is_weight = i % kParameters == 0;
    Piece& piece = is_wide ? wide_ : is_weight ? rounded_ : narrow_;
    const auto bytes = static_cast<std::size_t>(parameter.elements()) * size_of(parameter.dtype());
    if (piece.elements == 0) piece.dtype = parameter.dtype();
    // Kernels, and optimisers, read and write sixteen bytes at once.
    if (bytes == 0 || bytes % 16 != 0 || parameter.dtype() != piece.dtype) continue;
    places_[i].offset = piece.elements;
    piece.elements += parameter.elements();
    piece.holds_sums |= is_weight;
    piece.members.push_back(i);
    piece.likes.append(items[i]);
    piece_of[i] = &piece;
  }
  for (Piece* piece : {&wide_, &narrow_}) {
    if (piece->elements == 0) continue;
    piece->tensor = new_empty(like, Shape({piece->elements}), piece->dtype);
    piece->memory = mutable_view_of(piece->tensor, "gradients", call.stream());
  }
  if (rounded_.elements > 0) {
    sums_ = Tensor(Shape({rounded_.elements}), DType::f32, call.stream());
    rounded_.memory = sums_.view();
  }
  for (const Piece* piece : {&wide_, &rounded_}) {
    if (!piece->holds_sums) continue;
    const auto bytes = static_cast<std::size_t>(piece->elements) * size_of(piece->memory.dtype());
    fill_bytes_async(piece->memory.raw(), std::byte{0}, bytes, call.stream());
  }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (piece_of[i] == nullptr) continue;
    const TensorView& memory = piece_of[i]->memory;
    std::byte* const data = static_cast<std::byte*>(memory.raw()) +
                            static_cast<std::size_t>(places_[i].offset) * size_of(memory.dtype());
    places_[i].view = {data, memory.dtype(), all[i].shape(), call.stream()};
  }
}

std::vector<nb::object> ParameterGradients::tensors() {
  if (rounded_.elements > 0) {
    call_.expect(sums_.shape(), rounded_.dtype);
    rounded_.tensor = call_.give(call_.run([&] { return convert(sums_, rounded_.dtype); }));
    call_.expect_no_more();
  }
  std::vector<nb::object> result(places_.size());
  for (const Piece* piece : {&wide_, &rounded_, &narrow_}) {
    if (piece->elements == 0) continue;
    const nb::object made = framework().cut(piece->tensor, piece->likes);
    for (std::size_t i = 0; i < piece->members.size(); ++i)
      result[piece->members[i]] = nb::object(made[i]);
  }
  return result;
}

}   // namespace pumice::python
