// Which maps are built together.
#include "maps/cuda/build_maps.hpp"

#include <algorithm>
#include <numeric>

#include <pumice/core/error.hpp>

#include "maps/cuda/map_batch.hpp"
#include "maps/cuda/searched_map.hpp"

namespace pumice::cuda {
namespace {

void check(const MapRequest& request) {
  PUMICE_ENSURES(request.window != nullptr, request.name, " without a window");
  const int dimension = request.window->dimension();
  PUMICE_EXPECTS(
      request.in.layout.dimension == dimension && request.out.layout.dimension == dimension,
      request.name, ": sets of dimension ", request.in.layout.dimension, " and ",
      request.out.layout.dimension, ", a kernel of dimension ", dimension, "; make them equal");
  PUMICE_ENSURES(request.tiles || request.pairs, request.name, ": nothing is asked for");
}

/// The request, cut from what an earlier batch found of the same map.
MapRequest with_match(MapRequest request, std::span<const MapRequest> earlier,
                      std::span<const std::shared_ptr<MatchedMap>> matches) {
  for (std::size_t i = 0; i < earlier.size() && request.matched == nullptr; ++i) {
    if (SearchedMap::of(earlier[i]).serves(request)) request.matched = matches[i];
  }
  return request;
}

}   // namespace

std::int64_t DeviceMap::bytes() const {
  return static_cast<std::int64_t>(tile_order_.bytes() + entry_.bytes() + mirrored_.bytes() +
                                   in_row_.bytes() + out_row_.bytes() + offset_begin_.bytes() +
                                   pair_in_.bytes() + pair_out_.bytes() + counts_.bytes());
}

KeyRelation key_relation(const MapRequest& request) {
  const KeyLayout& in = request.in.layout;
  const KeyLayout& out = request.out.layout;
  if (request.window->has_stride(1) && in == out) return KeyRelation::same;
  if (!request.window->has_stride(2)) return KeyRelation::any;
  if (request.reach == Reach::out_to_in && can_halve(in) && halved(in) == out)
    return KeyRelation::in_is_finer;
  if (request.reach == Reach::in_to_out && can_halve(out) && halved(out) == in)
    return KeyRelation::out_is_finer;
  return KeyRelation::any;
}

std::vector<DeviceMap> build_maps(jit::KernelRunner& runner, std::span<const MapRequest> requests) {
  for (const MapRequest& request : requests)
    check(request);
  std::vector<DeviceMap> maps;
  std::vector<std::shared_ptr<MatchedMap>> matches;   // of the requests so far
  for (std::size_t next = 0; next < requests.size();) {
    MapBatchBuilder batch(runner);
    const std::span<const MapRequest> earlier = requests.first(next);
    for (; next < requests.size() && batch.takes(requests[next]); ++next)
      matches.push_back(batch.add(with_match(requests[next], earlier, matches)));
    for (DeviceMap& map : batch.build())
      maps.push_back(std::move(map));
  }
  return maps;
}

}   // namespace pumice::cuda
