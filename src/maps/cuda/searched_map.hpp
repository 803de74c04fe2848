// Which requests are for one map, so that it is searched and ordered once for all of them.
//
//   tiles of 128 rows ──┐
//   tiles of 256 rows ──┼──► one search, one order of the outputs, then a cut for each
//   pairs             ──┘
#pragma once

#include "maps/cuda/build_maps.hpp"

namespace pumice::cuda {

bool same_set(const CoordinateSetRef& a, const CoordinateSetRef& b);

/// What is searched for a request, and how its outputs are ordered then.
struct SearchedMap {
  CoordinateSetRef in{};
  CoordinateSetRef out{};
  const DeviceWindow* window = nullptr;
  Reach reach = Reach::out_to_in;
  std::int32_t splits = 0;   // 0: outputs are not ordered
  bool sort_by_mask = true;

  static SearchedMap of(const MapRequest& request);
  /// Whether `request` can be made from it: it is of the same map, and wants the same order or
  /// none.
  bool serves(const MapRequest& request) const;
};

}   // namespace pumice::cuda
