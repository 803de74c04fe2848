#include "maps/cuda/searched_map.hpp"

namespace pumice::cuda {

bool same_set(const CoordinateSetRef& a, const CoordinateSetRef& b) {
  return a.keys == b.keys && a.rows.count == b.rows.count && a.rows.capacity == b.rows.capacity;
}

SearchedMap SearchedMap::of(const MapRequest& request) {
  SearchedMap result{request.in, request.out, request.window, request.reach};
  if (request.tiles) {
    result.splits = request.tiles->splits;
    result.sort_by_mask = request.tiles->sort_by_mask;
  }
  return result;
}

bool SearchedMap::serves(const MapRequest& request) const {
  const bool is_ordered = !request.tiles || (splits == request.tiles->splits &&
                                             sort_by_mask == request.tiles->sort_by_mask);
  return window == request.window && reach == request.reach && is_ordered &&
         same_set(in, request.in) && same_set(out, request.out);
}

}   // namespace pumice::cuda
