// What the links of a chain learn, as kernels take it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pumice/nn/chain.hpp>

namespace pumice::nn {

/// The parameters of all links, whose weights are [K, C_in, C_out] here.
class Learned {
 public:
  /// Looks at what lies as kernels take it; the rest has no memory until `turn` or `look_at`.
  /// UserError where a weight has another number of elements than its layout, or is not of rank 3
  /// without one.
  Learned(std::span<const LinkParameters> given, std::size_t links);

  std::size_t size() const { return given_.size(); }
  ConstTensorView weight(std::size_t link) const { return weights_[link]; }
  ConstTensorView scale(std::size_t link) const { return given_[link].scale; }
  ConstTensorView shift(std::size_t link) const { return given_[link].shift; }
  std::span<const ConstTensorView> weights() const { return weights_; }
  /// Of a link's weight (0), scale (1) or shift (2), as it was given.
  const ConstTensorView& given(std::size_t link, std::size_t parameter) const;

  /// Copies of the weights that move, all in one launch and one piece of memory. Undefined where
  /// nothing moves.
  Tensor turn();
  /// Looks at what `turn` made, for the same parameters.
  void look_at(const Tensor& turned);

  bool has_layout(std::size_t link) const { return given_[link].layout != nullptr; }
  bool moves(std::size_t link) const { return moves_[link] != 0; }
  /// A gradient [K, C_in, C_out] to where that of the parameter goes.
  Permutation back(std::size_t link, ConstTensorView gradient, TensorView to) const;
  /// The same as a tensor of its own.
  Tensor given_back(std::size_t link, const Tensor& gradient, const Place& place) const;

 private:
  std::span<const LinkParameters> given_;
  std::vector<ConstTensorView> weights_;
  std::vector<char> moves_;
  std::size_t turned_bytes_ = 0;
};

}   // namespace pumice::nn
