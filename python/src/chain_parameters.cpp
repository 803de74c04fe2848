#include "chain_parameters.hpp"

#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

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
    all.push_back({.weight = call.view(items[kParameters * i], "weight"),
                   .scale = call.view(items[kParameters * i + 1], "weight of the norm"),
                   .shift = call.view(items[kParameters * i + 2], "bias of the norm")});
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

bool types_fit(nb::handle features, nb::handle other, nb::handle parameters, bool rounds) {
  const Items items(parameters, "parameters");
  try {
    const TensorLook x = look_at(features);
    const bool on_device = x.device_index >= 0;
    const bool is_double = x.dtype == DType::f64;
    if (!is_floating(x.dtype) || (is_double && on_device)) return false;
    if (!other.is_none() && look_at(other).dtype != x.dtype) return false;
    const DType sums = is_double ? DType::f64 : DType::f32;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const TensorLook one = look_at(items[i]);
      const bool is_weight = i % kParameters == 0;
      const bool fits = is_weight
                            ? one.dtype == x.dtype || (on_device && rounds && one.dtype == sums)
                            : one.dtype == sums;
      if (!fits || !one.is_contiguous) return false;
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
  parts_.push_back({tensor.ptr(), look_at(tensor).data, version});
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

ParameterGradients::ParameterGradients(const Call& call, nb::handle like,
                                       nb::handle parameters_given,
                                       const std::vector<Parameters>& parameters) {
  const Items items(parameters_given, kParameters * parameters.size(), "parameters");
  const DType wide = parameters.front().scale.dtype();
  std::vector<Shape> shapes;
  for (const Parameters& of_link : parameters) {
    for (const ConstTensorView& parameter : {of_link.weight, of_link.scale, of_link.shift}) {
      // Kernels write sixteen bytes at once.
      const bool fits =
          parameter.dtype() == wide && parameter.elements() > 0 && parameter.elements() % 4 == 0;
      if (fits) likes_.append(items[places_.size()]);
      places_.push_back({.offset = fits ? elements_ : -1, .view = {}});
      shapes.push_back(parameter.shape());
      if (fits) elements_ += parameter.elements();
    }
  }
  if (elements_ == 0) return;
  pieces_ = new_empty(like, Shape({elements_}), wide);
  const TensorView all = mutable_view_of(pieces_, "gradients", call.stream());
  auto* const begin = static_cast<std::byte*>(all.raw());
  const std::size_t bytes = size_of(wide);
  fill_bytes_async(begin, std::byte{0}, static_cast<std::size_t>(elements_) * bytes, call.stream());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.offset < 0) continue;
    std::byte* const data = begin + static_cast<std::size_t>(place.offset) * bytes;
    place.view = {data, wide, shapes[i], call.stream()};
  }
}

std::vector<nb::object> ParameterGradients::tensors() const {
  std::vector<nb::object> result(places_.size());
  if (elements_ == 0) return result;
  const nb::object made = framework().cut(pieces_, likes_);
  std::size_t next = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].offset >= 0) result[i] = nb::object(made[next++]);
  }
  return result;
}

}   // namespace pumice::python
