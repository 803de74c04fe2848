#include <pumice/kernels/tile_weights.hpp>

#include <optional>
#include <utility>

#include <pumice/core/error.hpp>

#include "kernels/cuda/packed_tiles.hpp"

namespace pumice {

TileWeights::TileWeights() : packed_(std::make_unique<cuda::PackedTiles>()) {}
TileWeights::~TileWeights() = default;
TileWeights::TileWeights(TileWeights&&) noexcept = default;
TileWeights& TileWeights::operator=(TileWeights&&) noexcept = default;

void TileWeights::clear() {
  packed_->clear();
}

struct TileWeightUses::Use {
  std::vector<cuda::PackUse> of_weight;
};

TileWeightUses::TileWeightUses() = default;
TileWeightUses::TileWeightUses(TileWeightUses&& other) noexcept = default;
TileWeightUses& TileWeightUses::operator=(TileWeightUses&& other) noexcept = default;
TileWeightUses::~TileWeightUses() = default;

void TileWeightUses::learn(std::span<TileWeights* const> packed) {
  auto uses = std::make_shared<std::vector<Use>>(packed.size());
  for (std::size_t i = 0; i < packed.size(); ++i)
    (*uses)[i].of_weight = packed[i]->packed().uses();
  uses_ = std::move(uses);
}

void TileWeightUses::pack(std::span<const ConstTensorView> weights,
                          std::span<TileWeights* const> packed, StreamView stream) const {
  PUMICE_ENSURES(weights.size() == packed.size(), weights.size(), " weights and room for ",
                 packed.size());
  const std::shared_ptr<const std::vector<Use>> uses = uses_;
  const bool knows = uses != nullptr && uses->size() == weights.size();
  if (stream.device.kind == DeviceKind::cpu || !knows) return;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  std::vector<PackWeightArguments> jobs;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (const cuda::PackUse& use : (*uses)[i].of_weight) {
      const auto job = packed[i]->packed().make_room(runner, use, weights[i]);
      if (job) jobs.push_back(*job);
    }
  }
  cuda::launch_packing(runner, jobs);
}

}   // namespace pumice
