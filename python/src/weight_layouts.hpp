// Weights of a chain in layouts of other libraries, and as kernels take them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <pumice/ops/permutation.hpp>

#include "chain_parameters.hpp"

namespace pumice::python {

/// In which shape to look at a parameter, and the order of its axes as [offsets, C_in, C_out], where
/// all axes but the last two are offsets.
struct WeightLayout {
  Shape shape;
  AxisOrder order{};

  WeightLayout(const std::vector<std::int64_t>& extents, const std::vector<int>& axes);
  Shape weight_shape() const;   // [K, C_in, C_out]
  bool moves() const;           // or else its memory stays as it is
};

/// Those of all links: one, or none of a parameter that is [K, C_in, C_out] as it lies.
class WeightLayouts {
 public:
  /// `layouts`: a tuple of WeightLayout or None, one of each link. Looks at what lies as kernels take
  /// it, which `parameters` have from then on. UserError where a weight has another number of
  /// elements than its layout, or is not of rank 3 without one.
  WeightLayouts(nb::handle layouts, std::vector<Parameters>& parameters);

  /// Copies of those that move, all in one launch and one piece of memory: `parameters` look at them
  /// from then on. Undefined where nothing moves.
  Tensor turn(const Call& call, std::vector<Parameters>& parameters) const;
  /// The same where turn() has made them.
  void look_at(const Tensor& turned, std::vector<Parameters>& parameters, StreamView stream) const;

  bool is_given(std::size_t link) const { return layouts_[link].has_value(); }
  bool moves(std::size_t link) const { return layouts_[link] && layouts_[link]->moves(); }
  /// Of the parameter itself.
  const Shape& given_shape(std::size_t link) const { return given_[link]; }
  /// A gradient [K, C_in, C_out] to where that of the parameter goes.
  Permutation back(std::size_t link, ConstTensorView gradient, TensorView to) const;
  /// The same as a tensor of its own.
  Tensor given_back(std::size_t link, const Tensor& gradient) const;

 private:
  std::vector<std::optional<WeightLayout>> layouts_;
  std::vector<Shape> given_;
};

}   // namespace pumice::python
