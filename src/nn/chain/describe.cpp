// Which values the links of a chain take, and what a pass is given.
#include <algorithm>

#include <pumice/core/error.hpp>

#include "nn/chain/passes.hpp"

namespace pumice::nn {

Chain::Chain(std::vector<ChainLink> links) : links_(std::move(links)) {
  PUMICE_EXPECTS(!links_.empty(), "a chain of no links: give at least one");
  const std::size_t nobody = links_.size();
  first_use_.assign(kChainGiven + links_.size(), nobody);
  last_use_ = first_use_;
  const auto take = [&](std::size_t value, std::size_t link) {
    PUMICE_EXPECTS(value < kChainGiven + link, "link ", link, " takes value ", value,
                   ", which no link before it makes: there are ", kChainGiven + link);
    first_use_[value] = std::min(first_use_[value], link);
    last_use_[value] = link;
  };
  for (std::size_t i = 0; i < links_.size(); ++i) {
    take(links_[i].input, i);
    if (links_[i].residual) take(*links_[i].residual, i);
  }
  for (std::size_t i = 0; i + 1 < links_.size(); ++i)
    PUMICE_EXPECTS(last_use_[kChainGiven + i] != nobody, "no link takes what link ", i,
                   " makes: leave it out");
}

void Chain::check(const ChainInput& input) const {
  PUMICE_EXPECTS(input.maps.size() == size(), input.maps.size(), " maps for a chain of ", size(),
                 " links: give one for each");
  PUMICE_EXPECTS(last_use_[1] == size() || input.other.defined(),
                 "other is undefined, and a link takes it: give value 1 of the chain");
  for (const KernelMapView& map : input.maps) {
    const bool fits =
        map.device.kind == DeviceKind::cpu ||
        map.map->in()->stream().native == input.maps.front().map->in()->stream().native;
    PUMICE_ENSURES(fits, "the maps of a chain belong to several streams");
  }
}

std::vector<const KernelMap*> kernel_maps(const ChainInput& input) {
  std::vector<const KernelMap*> result;
  result.reserve(input.maps.size());
  for (const KernelMapView& map : input.maps)
    result.push_back(map.map);
  return result;
}

std::vector<TileWeights*> pointers_to(std::vector<TileWeights>& packed) {
  std::vector<TileWeights*> result;
  result.reserve(packed.size());
  for (TileWeights& one : packed)
    result.push_back(&one);
  return result;
}

PackedLinks::PackedLinks(TileWeightUses& uses, std::span<const ConstTensorView> weights,
                         bool on_device, StreamView stream)
    : uses_(uses), packed_(on_device ? weights.size() : 0) {
  if (on_device) uses_.pack(weights, pointers_to(packed_), stream);
}

void PackedLinks::learn() {
  if (!packed_.empty()) uses_.learn(pointers_to(packed_));
}

}   // namespace pumice::nn
