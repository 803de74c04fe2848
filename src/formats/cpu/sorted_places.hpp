// Places of entries, sorted by counting.
#pragma once

#include <cstdint>
#include <utility>

#include <pumice/core/buffer.hpp>

#include "core/row_groups.hpp"

namespace pumice::cpu {

/// 0, 1, 2, …
inline Buffer<std::int64_t> all_places(std::int64_t count) {
  Buffer<std::int64_t> places(count);
  for (std::int64_t i = 0; i < count; ++i)
    places[i] = i;
  return places;
}

/// Sorts places by what `key` says of each, a number below `limit`; stable. Returns where those of
/// each number begin, and the end. O(places + limit).
template <class Key>
Buffer<std::int64_t> sort_by(Buffer<std::int64_t>& places, std::int64_t limit, Key&& key) {
  Buffer<std::int32_t> keys(places.size());
  for (std::int64_t i = 0; i < places.size(); ++i)
    keys[i] = static_cast<std::int32_t>(key(places[i]));
  RowGroups groups = group_rows(std::as_const(keys).span(), limit);
  for (std::int64_t i = 0; i < places.size(); ++i)
    groups.position[i] = places[groups.position[i]];
  places = std::move(groups.position);
  return std::move(groups.begin);
}

}   // namespace pumice::cpu
