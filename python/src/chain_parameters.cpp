#include "chain_parameters.hpp"

#include <algorithm>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/ops/elementwise.hpp>

#include "framework_allocator.hpp"
#include "names.hpp"
#include "tensor_look.hpp"
#include "weight_layouts.hpp"

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
                                       const std::vector<Parameters>& parameters,
                                       const WeightLayouts& layouts)
    : call_(call), like_(like), layouts_(layouts) {
  const Items items(parameters_given, kParameters * parameters.size(), "parameters");
  for (const Parameters& of_link : parameters)
    parameters_.insert(parameters_.end(), {of_link.weight, of_link.scale, of_link.shift});
  places_.resize(parameters_.size());
  std::vector<Piece*> piece_of(parameters_.size(), nullptr);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const ConstTensorView& parameter = parameters_[i];
    const bool is_wide = parameter.dtype() == DType::f32 || parameter.dtype() == DType::f64;
    const bool is_weight = i % kParameters == 0;
    Piece& piece = is_wide ? wide_ : is_weight ? rounded_ : narrow_;
    const auto bytes = static_cast<std::size_t>(parameter.elements()) * size_of(parameter.dtype());
    if (piece.elements == 0) piece.dtype = parameter.dtype();
    // Kernels, and optimisers, read and write sixteen bytes at once.
    if (bytes == 0 || bytes % 16 != 0 || parameter.dtype() != piece.dtype) continue;
    places_[i].offset = piece.elements;
    piece.elements += parameter.elements();
    piece.holds_sums |= is_weight && !moves(i);
    piece.members.push_back(i);
    piece.likes.append(items[i]);
    piece_of[i] = &piece;
  }
  std::int64_t turned = 0;
  for (const std::size_t i : wide_.members) {
    if (!moves(i)) continue;
    places_[i].turned_offset = turned;
    turned += parameters_[i].elements();
  }
  for (Piece* piece : {&wide_, &narrow_}) {
    if (piece->elements == 0) continue;
    piece->tensor = new_empty(like, Shape({piece->elements}), piece->dtype);
    piece->memory = mutable_view_of(piece->tensor, "gradients", call.stream());
  }
  const auto clear = [&](const TensorView& memory) {
    const auto bytes = static_cast<std::size_t>(memory.elements()) * size_of(memory.dtype());
    fill_bytes_async(memory.raw(), std::byte{0}, bytes, call.stream());
  };
  if (wide_.holds_sums) clear(wide_.memory);
  const auto add_up = [&](std::int64_t elements, DType dtype) {
    if (elements == 0) return Tensor();
    Tensor memory(Shape({elements}), dtype, call.stream());
    clear(memory.view());
    return memory;
  };
  sums_ = add_up(rounded_.elements, DType::f32);
  turned_sums_ = add_up(turned, wide_.dtype);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (piece_of[i] == &rounded_)
      place.view = in(sums_.view(), place.offset, i);
    else if (piece_of[i] == &wide_ && moves(i))
      place.view = in(turned_sums_.view(), place.turned_offset, i);
    else if (piece_of[i] != nullptr)
      place.view = in(piece_of[i]->memory, place.offset, i);
  }
}

bool ParameterGradients::moves(std::size_t parameter) const {
  return parameter % kParameters == 0 && layouts_.moves(parameter / kParameters);
}

TensorView ParameterGradients::in(const TensorView& memory, std::int64_t offset,
                                  std::size_t parameter) const {
  std::byte* const data =
      static_cast<std::byte*>(memory.raw()) + static_cast<std::size_t>(offset) * size_of(memory.dtype());
  return {data, memory.dtype(), parameters_[parameter].shape(), call_.stream()};
}

std::vector<nb::object> ParameterGradients::tensors() {
  std::vector<Permutation> back;
  Tensor halves;
  if (rounded_.elements > 0) {
    const bool some_move =
        std::any_of(rounded_.members.begin(), rounded_.members.end(),
                    [&](std::size_t i) { return moves(i); });
    if (some_move) {
      rounded_.tensor = new_empty(like_, sums_.shape(), rounded_.dtype);
      rounded_.memory = mutable_view_of(rounded_.tensor, "gradients", call_.stream());
      halves = call_.run([&] { return convert(sums_, rounded_.dtype); });
      for (const std::size_t i : rounded_.members) {
        const std::int64_t offset = places_[i].offset;
        back.push_back(layouts_.back(i / kParameters, in(halves.view(), offset, i),
                                      in(rounded_.memory, offset, i)));
      }
    } else {
      call_.expect(sums_.shape(), rounded_.dtype);
      rounded_.tensor = call_.give(call_.run([&] { return convert(sums_, rounded_.dtype); }));
      call_.expect_no_more();
    }
  }
  for (const std::size_t i : wide_.members) {
    if (moves(i))
      back.push_back(layouts_.back(i / kParameters, places_[i].view,
                                    in(wide_.memory, places_[i].offset, i)));
  }
  if (!back.empty()) call_.run([&] { permute(back); });
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
