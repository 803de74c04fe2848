// Looks a map up by its sets and window, or builds it.
#include <pumice/maps/map_cache.hpp>

#include <chrono>

namespace pumice {
template <class Build> KernelMapPtr MapCache::find_or_build(const Key& key, Build&& build) {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.map;
  }
  if (ahead_ != nullptr) {
    if (KernelMapPtr made = ahead_->take(key)) {
      entries_.push_back({key, made});
      return made;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  KernelMapPtr map = build();
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  build_ms_ += spent.count();
  entries_.push_back({key, map});
  if (ahead_ != nullptr) ahead_->note(entries_.back());
  return map;
}

std::vector<KernelMapPtr> MapCache::maps() const {
  std::vector<KernelMapPtr> result;
  result.reserve(entries_.size());
  for (const Entry& entry : entries_)
    result.push_back(entry.map);
  return result;
}

KernelMapPtr MapCache::submanifold(const CoordinateSetPtr& set, const KernelWindow& window) {
  return find_or_build({Kind::submanifold, set, nullptr, window},
                       [&] { return submanifold_map(set, window); });
}

KernelMapPtr MapCache::strided(const CoordinateSetPtr& in, const KernelWindow& window,
                               StridedOutputs outputs) {
  const Kind kind = outputs == StridedOutputs::dilating ? Kind::dilating : Kind::cell;
  return find_or_build({kind, in, nullptr, window},
                       [&] { return strided_map(in, window, outputs); });
}

KernelMapPtr MapCache::transposed(const CoordinateSetPtr& coarse, const CoordinateSetPtr& fine,
                                  const KernelWindow& window) {
  return find_or_build({Kind::transposed, coarse, fine, window},
                       [&] { return transposed_map(coarse, fine, window); });
}

KernelMapPtr MapCache::strided_to(const CoordinateSetPtr& coarse) const {
  for (const auto& [key, map] : entries_) {
    const bool is_strided = key.kind == Kind::dilating || key.kind == Kind::cell;
    if (is_strided && map->out() == coarse) return map;   // each makes a set of its own
  }
  return nullptr;
}

KernelMapPtr MapCache::strided_to(const CoordinateSetPtr& coarse, const KernelWindow& window,
                                  const CoordinateSetPtr& fine) const {
  KernelMapPtr map = strided_to(coarse);
  const bool fits =
      map != nullptr && map->window() == window && (fine == nullptr || map->in() == fine);
  return fits ? map : nullptr;
}

KernelMapPtr MapCache::generative(const CoordinateSetPtr& coarse, const KernelWindow& window) {
  return find_or_build({Kind::generative, coarse, nullptr, window},
                       [&] { return generative_map(coarse, window); });
}

}   // namespace pumice
