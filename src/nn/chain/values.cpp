// Values side by side, and shapes of all.
#include "nn/chain/passes.hpp"
#include "ops/convolution_steps.hpp"

namespace pumice::nn {

void Values::join_for(std::size_t link, const KernelMapView& map) {
  const std::size_t source = structure_.sources[link];
  if (!structure_.is_join(source)) return;
  Tensor& joined = made_[source - kChainGiven];
  if (joined.defined()) return;
  const ChainStructure::Join& join = structure_.join_at(source);
  joined = concatenate_inputs((*this)[join.left], (*this)[join.right], map);
}

ConstTensorView ValueShapes::operator[](std::size_t value) const {
  if (value == 0) return input_.features;
  if (value == 1) return input_.other;
  const auto of = [&](std::int64_t rows, std::int64_t channels) {
    return ConstTensorView(nullptr, input_.features.dtype(), {rows, channels},
                           input_.features.stream());
  };
  if (structure_.is_join(value)) {
    const ChainStructure::Join& join = structure_.join_at(value);
    const ConstTensorView left = (*this)[join.left];
    return of(left.extent(0), left.extent(1) + (*this)[join.right].extent(1));
  }
  const std::size_t link = value - kChainGiven;
  return of(input_.maps[link].out_rows, weights_[link].extent(2));
}

}   // namespace pumice::nn
