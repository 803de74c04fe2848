#include <pumice/formats/map_uses.hpp>

#include <algorithm>
#include <utility>

#include <pumice/core/error.hpp>

#include "formats/cuda/map_formats.hpp"

namespace pumice {

struct MapUses::Use {
  cuda::MapFormats::Uses of_map;
};

MapUses::MapUses() = default;
MapUses::MapUses(MapUses&& other) noexcept = default;
MapUses& MapUses::operator=(MapUses&& other) noexcept = default;
MapUses::~MapUses() = default;

namespace {

/// What is kept with the map at `place`; null where an earlier place has the same map, and on the
/// CPU.
cuda::MapFormats* formats_at(std::span<const KernelMap* const> maps, std::size_t place) {
  const auto earlier = maps.first(place);
  if (std::find(earlier.begin(), earlier.end(), maps[place]) != earlier.end()) return nullptr;
  const KernelMap& map = *maps[place];
  return map.device().kind == DeviceKind::cpu ? nullptr : &cuda::MapFormats::of(map);
}

}   // namespace

void MapUses::learn(std::span<const KernelMap* const> maps) {
  auto uses = std::make_shared<std::vector<Use>>(maps.size());
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (cuda::MapFormats* formats = formats_at(maps, i))
      (*uses)[i].of_map = formats->here(maps[i]->in()->stream()).uses();
  }
  uses_ = std::move(uses);
}

void MapUses::prepare(std::span<const KernelMap* const> maps) const {
  const std::shared_ptr<const std::vector<Use>> uses = uses_;
  // Of a list of another length nothing is known.
  if (uses == nullptr || uses->size() != maps.size() || maps.empty()) return;
  const StreamView stream = maps.front()->in()->stream();
  if (stream.device.kind == DeviceKind::cpu) return;
  std::vector<cuda::CutRequest> requests;
  std::vector<std::pair<std::size_t, std::size_t>> of_map;   // place, how many
  for (std::size_t i = 0; i < maps.size(); ++i) {
    cuda::MapFormats* const formats = formats_at(maps, i);
    if (formats == nullptr) continue;
    PUMICE_ENSURES(maps[i]->in()->stream().native == stream.native,
                   "maps of several streams are prepared together");
    const std::size_t before = requests.size();
    for (cuda::CutRequest& request : formats->here(stream).missing((*uses)[i].of_map))
      requests.push_back(std::move(request));
    if (requests.size() > before) of_map.emplace_back(i, requests.size() - before);
  }
  if (requests.empty()) return;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  std::vector<cuda::CutMap> made = cuda::cut_maps(runner, requests);
  std::size_t next = 0;
  for (const auto& [place, count] : of_map) {
    for (std::size_t n = 0; n < count; ++n, ++next)
      cuda::MapFormats::of(*maps[place]).here(stream).keep(requests[next], std::move(made[next]));
  }
}

}   // namespace pumice
