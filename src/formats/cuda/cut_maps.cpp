// Which maps are cut together.
#include "formats/cuda/cut_maps.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <pumice/core/error.hpp>

#include "formats/cuda/counted_cuts.hpp"
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

/// Requests in batches, as many in each as fit: `begin` makes an empty one, and `end` gets it full.
template <class Begin, class End>
void in_batches(std::span<const CutRequest> requests, const Begin& begin, const End& end) {
  for (const CutRequest& request : requests)
    check(request);
  std::vector<std::shared_ptr<OrderedMap>> orders;   // of the requests so far
  while (orders.size() < requests.size()) {
    CutBatchBuilder& batch = begin();
    const std::span<const CutRequest> before = requests.first(orders.size());
    for (const CutRequest& request : requests.subspan(orders.size())) {
      const CutRequest informed = with_earlier(request, before, orders);
      if (!batch.takes(informed)) break;
      orders.push_back(batch.add(informed));
    }
    end(batch);
  }
}

}   // namespace

std::int64_t CutMap::bytes() const {
  return static_cast<std::int64_t>(tile_order_.bytes() + entry_.bytes() + mirrored_.bytes() +
                                   in_row_.bytes() + out_row_.bytes() + offset_begin_.bytes() +
                                   pair_in_.bytes() + pair_out_.bytes() + counts_.bytes());
}

std::vector<CutMap> cut_maps(jit::KernelRunner& runner, std::span<const CutRequest> requests,
                             const std::shared_ptr<ArenaAllocator>& zeroed) {
  std::vector<CutMap> cuts;
  std::optional<CutBatchBuilder> batch;
  in_batches(
      requests,
      [&]() -> CutBatchBuilder& { return batch.emplace(runner, CutMemory::given, zeroed); },
      [&](CutBatchBuilder& full) { std::ranges::move(full.build(), std::back_inserter(cuts)); });
  return cuts;
}

CountedCuts::CountedCuts(jit::KernelRunner& runner, std::span<const CutRequest> requests,
                         CountReader& reader) {
  in_batches(
      requests,
      [&]() -> CutBatchBuilder& {
        batches_.push_back(std::make_unique<CutBatchBuilder>(runner, CutMemory::counted, nullptr));
        return *batches_.back();
      },
      [&](CutBatchBuilder& full) { full.count(reader); });
}

CountedCuts::~CountedCuts() = default;

bool CountedCuts::fit(std::span<const std::int64_t> words) const {
  return std::ranges::all_of(batches_, [&](const auto& batch) { return batch->fits(words); });
}

std::vector<CutMap> CountedCuts::write(const KnownCounts& known) {
  std::vector<CutMap> cuts;
  for (auto& batch : batches_) {
    std::ranges::move(batch->write(known), std::back_inserter(cuts));
    batch = nullptr;   // whose memory the next one's entries may take
  }
  return cuts;
}

}   // namespace pumice::cuda
