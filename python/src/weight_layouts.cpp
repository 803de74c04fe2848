// Layouts of other libraries' weights, as Python describes them.
#include <cstdint>
#include <vector>

#include <nanobind/stl/vector.h>
#include <pumice/nn/weight_layout.hpp>

#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {

void bind_weight_layouts(nb::module_& module) {
  nb::class_<nn::WeightLayout>(
      module, "WeightLayout",
      "The shape to look at a parameter in, and the order of its axes as [offsets…, in, out].")
      .def(nb::init<const std::vector<std::int64_t>&, const std::vector<int>&>(), "shape"_a,
           "axes"_a)
      .def_prop_ro("shape",
                   [](const nn::WeightLayout& layout) {
                     const auto extents = layout.shape.extents();
                     return std::vector<std::int64_t>(extents.begin(), extents.end());
                   })
      .def_prop_ro("axes", [](const nn::WeightLayout& layout) {
        return std::vector<int>(layout.order.begin(), layout.order.begin() + layout.shape.rank());
      });
}

}   // namespace pumice::python
