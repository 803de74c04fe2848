#include <pumice/maps/map_uses.hpp>

#include <algorithm>
#include <utility>

#include <pumice/core/error.hpp>

#include "maps/cuda/map_structures.hpp"

namespace pumice {

struct MapUses::Use {
  cuda::MapStructures::Uses of_map;
};

MapUses::MapUses() = default;
MapUses::MapUses(MapUses&& other) noexcept = default;
MapUses& MapUses::operator=(MapUses&& other) noexcept = default;
MapUses::~MapUses() = default;

namespace {

/// The structures of the map at `place`; null where an earlier place has the same, or on the CPU.
cuda::MapStructures* structures_at(std::span<const KernelMap* const> maps, std::size_t place) {
  const auto earlier = maps.first(place);
  if (std::find(earlier.begin(), earlier.end(), maps[place]) != earlier.end()) return nullptr;
  return maps[place]->structures();
}

}   // namespace

void MapUses::learn(std::span<const KernelMap* const> maps) {
  auto uses = std::make_shared<std::vector<Use>>(maps.size());
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (cuda::MapStructures* structures = structures_at(maps, i))
      (*uses)[i].of_map = structures->here(maps[i]->in()->stream()).uses();
  }
  uses_ = std::move(uses);
}

void MapUses::prepare(std::span<const KernelMap* const> maps) const {
  const std::shared_ptr<const std::vector<Use>> uses = uses_;
  // Of a list of another length nothing is known.
  if (uses == nullptr || uses->size() != maps.size() || maps.empty()) return;
  const StreamView stream = maps.front()->in()->stream();
  if (stream.device.kind == DeviceKind::cpu) return;
  std::vector<cuda::MapRequest> requests;
  std::vector<std::pair<std::size_t, std::size_t>> of_map;   // place, how many
  for (std::size_t i = 0; i < maps.size(); ++i) {
    cuda::MapStructures* structures = structures_at(maps, i);
    if (structures == nullptr) continue;
    PUMICE_ENSURES(maps[i]->in()->stream().native == stream.native,
                   "maps of several streams are prepared together");
    const std::size_t before = requests.size();
    cuda::MapStructures& those = structures->here(stream);
    for (cuda::MapRequest& request : those.missing(*maps[i], (*uses)[i].of_map))
      requests.push_back(std::move(request));
    if (requests.size() > before) of_map.emplace_back(i, requests.size() - before);
  }
  if (requests.empty()) return;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  std::vector<cuda::DeviceMap> made = cuda::build_maps(runner, requests);
  std::size_t next = 0;
  for (const auto& [place, count] : of_map) {
    for (std::size_t n = 0; n < count; ++n, ++next)
      maps[place]->structures()->here(stream).keep(*maps[place], requests[next],
                                                   std::move(made[next]));
  }
}

}   // namespace pumice
