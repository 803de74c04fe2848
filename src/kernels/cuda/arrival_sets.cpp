#include "kernels/cuda/arrival_sets.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <pumice/core/stream.hpp>

#include "graphs/cuda/balance.hpp"

namespace pumice::cuda {

struct ArrivalSets::Owners {
  using Owner = std::pair<void*, std::uint64_t>;   // a stream, and the recording it takes part in
  std::mutex mutex;
  std::vector<Owner> all;
};

ArrivalSets::ArrivalSets() : owners_(std::make_shared<Owners>()) {}

int ArrivalSets::of(StreamView stream) const {
  const Owners::Owner wanted{stream.native, capture_of(stream)};
  const std::scoped_lock lock(owners_->mutex);
  std::vector<Owners::Owner>& all = owners_->all;
  const auto found = std::ranges::find(all, wanted);
  if (found != all.end()) return static_cast<int>(found - all.begin());
  if (all.size() == kArrivalSets) return -1;
  all.push_back(wanted);
  return static_cast<int>(all.size()) - 1;
}

std::uint32_t* arrival_counters(const CsrView& pattern, std::int64_t tiles, StreamView stream) {
  if (pattern.long_rows.arrived == nullptr || pattern.kept == nullptr || tiles > kArrivalTiles)
    return nullptr;
  const auto sets = pattern.kept->get<ArrivalSets>("arrival sets", [] { return ArrivalSets(); });
  const int set = sets->of(stream);
  if (set < 0) return nullptr;
  return pattern.long_rows.arrived + set * kArrivalTiles * most_row_parts(pattern.entries());
}

}   // namespace pumice::cuda
