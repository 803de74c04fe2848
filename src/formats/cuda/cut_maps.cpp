// Which maps are cut together.
#include "formats/cuda/cut_maps.hpp"

#include <pumice/core/error.hpp>

#include "formats/cuda/cut_batch.hpp"

namespace pumice::cuda {
namespace {

void check(const CutRequest& request) {
  const MapSearch& map = request.map;
  PUMICE_ENSURES(map.window != nullptr, map.name, " without a window");
  const int dimension = map.window->dimension();
  PUMICE_EXPECTS(map.in.layout.dimension == dimension && map.out.layout.dimension == dimension,
                 map.name, ": sets of dimension ", map.in.layout.dimension, " and ",
                 map.out.layout.dimension, ", a kernel of dimension ", dimension,
                 "; make them equal");
  PUMICE_ENSURES(request.tiles || request.pairs, map.name, ": nothing is asked for");
}

/// The request, made from what earlier batches found of the same map; best from one with the order
/// that it wants.
CutRequest with_earlier(CutRequest request, std::span<const CutRequest> before,
                        std::span<const std::shared_ptr<OrderedMap>> orders) {
  const auto look = [&](bool ordered) {
    for (std::size_t i = 0; i < before.size() && request.earlier == nullptr; ++i) {
      const bool fits = !ordered || !request.tiles || orders[i]->is_ordered_for(*request.tiles);
      if (fits && same_map(before[i].map, request.map)) request.earlier = orders[i];
    }
  };
  look(true);
  look(false);
  return request;
}

}   // namespace

std::int64_t CutMap::bytes() const {
  return static_cast<std::int64_t>(tile_order_.bytes() + entry_.bytes() + mirrored_.bytes() +
                                   in_row_.bytes() + out_row_.bytes() + offset_begin_.bytes() +
                                   pair_in_.bytes() + pair_out_.bytes() + counts_.bytes());
}

std::vector<CutMap> cut_maps(jit::KernelRunner& runner, std::span<const CutRequest> requests,
                             const std::shared_ptr<ArenaAllocator>& zeroed) {
  for (const CutRequest& request : requests)
    check(request);
  std::vector<CutMap> cuts;
  std::vector<std::shared_ptr<OrderedMap>> orders;   // of the requests so far
  while (orders.size() < requests.size()) {
    CutBatchBuilder batch(runner, zeroed);
    const std::span<const CutRequest> before = requests.first(orders.size());
    for (const CutRequest& request : requests.subspan(orders.size())) {
      const CutRequest informed = with_earlier(request, before, orders);
      if (!batch.takes(informed)) break;
      orders.push_back(batch.add(informed));
    }
    for (CutMap& cut : batch.build())
      cuts.push_back(std::move(cut));
  }
  return cuts;
}

}   // namespace pumice::cuda
