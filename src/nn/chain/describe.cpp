// What a chain is described by, and what a pass is given.
#include <utility>

#include <pumice/core/error.hpp>

#include "nn/chain/structure.hpp"

namespace pumice::nn {

Chain::Chain(std::vector<ChainLink> links)
    : links_(std::move(links)), structure_(std::make_shared<const ChainStructure>(links_)) {}

void Chain::check(const ChainInput& input) const {
  PUMICE_EXPECTS(input.maps.size() == size(), input.maps.size(), " maps for a chain of ", size(),
                 " links: give one for each");
  PUMICE_EXPECTS(input.features.rank() == 2, "features have shape ",
                 to_string(input.features.shape()), ": give [rows, channels]");
  PUMICE_EXPECTS(structure_->last_use[1] == size() || input.other.defined(),
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
