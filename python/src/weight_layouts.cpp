#include "weight_layouts.hpp"

#include <algorithm>

#include <nanobind/stl/vector.h>
#include <pumice/core/error.hpp>

#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

constexpr std::size_t kTogether = 16;   // bytes that kernels read at once

std::size_t bytes_of(ConstTensorView view) {
  return static_cast<std::size_t>(view.elements()) * size_of(view.dtype());
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kTogether - 1) / kTogether * kTogether;
}

}   // namespace

WeightLayout::WeightLayout(const std::vector<std::int64_t>& extents, const std::vector<int>& axes)
    : shape(extents) {
  PUMICE_ENSURES(axes.size() == extents.size() && axes.size() >= 2, axes.size(), " axes of ",
                 extents.size());
  std::copy(axes.begin(), axes.end(), order.begin());
}

Shape WeightLayout::weight_shape() const {
  const auto extent = [&](int axis) { return shape[order[static_cast<std::size_t>(axis)]]; };
  std::int64_t offsets = 1;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis)
    offsets *= extent(axis);
  return {offsets, extent(shape.rank() - 2), extent(shape.rank() - 1)};
}

bool WeightLayout::moves() const {
  int last = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = order[static_cast<std::size_t>(axis)];
    if (shape[from] == 1) continue;
    if (from < last) return true;
    last = from;
  }
  return false;
}

WeightLayouts::WeightLayouts(nb::handle layouts, std::vector<Parameters>& parameters) {
  const Items items(layouts, parameters.size(), "layouts of weights");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ConstTensorView& weight = parameters[i].weight;
    given_.push_back(weight.shape());
    layouts_.emplace_back();
    if (!items[i].is_none()) {
      const auto& layout = nb::cast<const WeightLayout&>(items[i]);
      PUMICE_EXPECTS(layout.shape.elements() == weight.elements(), "weight has shape ",
                     to_string(weight.shape()), ": the layer's is made of ",
                     to_string(layout.shape));
      weight = {weight.raw(), weight.dtype(), layout.weight_shape(), weight.stream()};
      layouts_.back() = layout;
    }
    PUMICE_EXPECTS(weight.rank() == 3, "weight has shape ", to_string(weight.shape()),
                   ": give [offsets, input channels, output channels]");
  }
}

Tensor WeightLayouts::turn(const Call& call, std::vector<Parameters>& parameters) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (moves(i)) bytes += aligned(bytes_of(parameters[i].weight));
  }
  if (bytes == 0) return {};
  std::vector<Permutation> copies;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!moves(i)) continue;
    const ConstTensorView& weight = parameters[i].weight;
    const ConstTensorView from(weight.raw(), weight.dtype(), layouts_[i]->shape, weight.stream());
    copies.push_back({from, layouts_[i]->order, {}});
  }
  return call.run([&] {
    Tensor turned(Shape({static_cast<std::int64_t>(bytes)}), DType::u8, call.stream());
    look_at(turned, parameters, call.stream());
    std::size_t next = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!moves(i)) continue;
      const ConstTensorView& weight = parameters[i].weight;
      copies[next++].to = {const_cast<void*>(weight.raw()), weight.dtype(), weight.shape(),
                           call.stream()};
    }
    permute(copies);
    return turned;
  });
}

void WeightLayouts::look_at(const Tensor& turned, std::vector<Parameters>& parameters,
                            StreamView stream) const {
  const auto* next = turned.defined() ? static_cast<const std::byte*>(turned.raw()) : nullptr;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!moves(i)) continue;
    ConstTensorView& weight = parameters[i].weight;
    weight = {next, weight.dtype(), weight.shape(), stream};
    next += aligned(bytes_of(weight));
  }
}

Permutation WeightLayouts::back(std::size_t link, ConstTensorView gradient, TensorView to) const {
  Permutation copy{gradient, {0, 1, 2}, to};
  if (!layouts_[link]) return copy;
  const WeightLayout& layout = *layouts_[link];
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < layout.shape.rank(); ++axis) {
    const int from = layout.order[static_cast<std::size_t>(axis)];
    extents.push_back(layout.shape[from]);
    copy.order[static_cast<std::size_t>(from)] = axis;
  }
  copy.from = {gradient.raw(), gradient.dtype(), Shape(extents), gradient.stream()};
  return copy;
}

Tensor WeightLayouts::given_back(std::size_t link, const Tensor& gradient) const {
  Tensor result(given_[link], gradient.dtype(), gradient.stream());
  const Permutation copy = back(link, gradient.view(), result.view());
  permute({&copy, 1});
  return result;
}

void bind_weight_layouts(nb::module_& module) {
  nb::class_<WeightLayout>(
      module, "WeightLayout",
      "The shape to look at a parameter in, and the order of its axes as [offsets…, in, out].")
      .def(nb::init<const std::vector<std::int64_t>&, const std::vector<int>&>(), "shape"_a,
           "axes"_a)
      .def_prop_ro("shape",
                   [](const WeightLayout& layout) {
                     std::vector<std::int64_t> extents;
                     for (int axis = 0; axis < layout.shape.rank(); ++axis)
                       extents.push_back(layout.shape[axis]);
                     return extents;
                   })
      .def_prop_ro("axes", [](const WeightLayout& layout) {
        return std::vector<int>(layout.order.begin(), layout.order.begin() + layout.shape.rank());
      });
}

}   // namespace pumice::python
