// Requests of all maps, in one batch.
#include "formats/cuda/cut_wanted.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>

#include "formats/cuda/map_formats.hpp"

namespace pumice::cuda {
namespace {

struct OfMap {
  const KernelMap* map;
  MapFormats::Wanted wanted{};
};

std::vector<OfMap> by_map(std::span<const CutWanted> wanted) {
  std::vector<OfMap> maps;   // some dozen
  for (const CutWanted& one : wanted) {
    auto of_map = std::ranges::find(maps, one.map, &OfMap::map);
    if (of_map == maps.end()) of_map = maps.insert(maps.end(), {one.map});
    if (one.tiles) {
      of_map->wanted.add(MapFormats::of(*one.map).tiles_wanted(one.is_transposed, *one.tiles));
    } else {
      of_map->wanted.pairs = true;
    }
  }
  return maps;
}

}   // namespace

void cut_wanted(std::span<const CutWanted> wanted) {
  if (wanted.empty()) return;
  const StreamView stream = wanted.front().map->in()->stream();
  std::vector<CutRequest> requests;
  std::vector<std::pair<MapFormats*, std::size_t>> of_map;   // how many of each
  for (const OfMap& one : by_map(wanted)) {
    PUMICE_ENSURES(one.map->in()->stream().native == stream.native,
                   "maps of several streams are cut together");
    MapFormats& formats = MapFormats::of(*one.map).here(stream);
    std::vector<CutRequest> missing = formats.missing(one.wanted);
    if (!missing.empty()) of_map.emplace_back(&formats, missing.size());
    std::ranges::move(missing, std::back_inserter(requests));
  }
  if (requests.empty()) return;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  std::vector<CutMap> made = cut_maps(runner, requests);
  std::size_t next = 0;
  for (const auto& [formats, count] : of_map) {
    for (std::size_t n = 0; n < count; ++n, ++next)
      formats->keep(requests[next], std::move(made[next]));
  }
}

}   // namespace pumice::cuda
