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
  PUMICE_EXPECTS(input.features.rank() == 2, "features have shape ",
                 to_string(input.features.shape()), ": give [rows, channels]");
  PUMICE_EXPECTS(last_use_[1] == size() || input.other.defined(),
                 "other is undefined, and a link takes it: give value 1 of the chain");
  for (const KernelMapView& map : input.maps) {
    PUMICE_EXPECTS(map.device == input.features.device(), "features are on ",
                   to_string(input.features.device()), " but a kernel map is on ",
                   to_string(map.device), ": build it from coordinates on the same device");
    const bool fits =
        map.device.kind == DeviceKind::cpu ||
        map.map->in()->stream().native == input.maps.front().map->in()->stream().native;
    PUMICE_ENSURES(fits, "the maps of a chain belong to several streams");
  }
}

}   // namespace pumice::nn
