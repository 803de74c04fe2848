// One owner for the forms of both back ends.
#include <pumice/kernels/packed_weights.hpp>

#include <array>

#include "kernels/cuda/packed_tiles.hpp"

namespace pumice {

struct PackedWeights::Forms {
  std::array<WeightPanels, 2> panels;   // as it lies, transposed
  cuda::PackedTiles tiles;
};

PackedWeights::PackedWeights() : forms_(std::make_unique<Forms>()) {}
PackedWeights::~PackedWeights() = default;
PackedWeights::PackedWeights(PackedWeights&&) noexcept = default;
PackedWeights& PackedWeights::operator=(PackedWeights&&) noexcept = default;

void PackedWeights::clear() {
  forms_->panels = {};
  forms_->tiles.clear();
}

const WeightPanels& PackedWeights::panels(const ConstTensorView& weight, std::int64_t groups,
                                          bool transpose) {
  WeightPanels& panels = forms_->panels[transpose ? 1 : 0];
  if (!panels.is_of(weight, groups, transpose)) panels = WeightPanels(weight, groups, transpose);
  return panels;
}

cuda::PackedTiles& PackedWeights::tiles() {
  return forms_->tiles;
}

}   // namespace pumice
