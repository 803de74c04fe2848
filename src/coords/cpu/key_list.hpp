// Coordinates as a list of keys: the common start of sets, of unique and of unions.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

using AxisBounds = std::array<std::int64_t, kMaxDimension>;

struct Bounds {
  AxisBounds low{};
  AxisBounds high{};
};

/// A layout that can be halved as often as the 63 bits of a key allow, up to kDefaultHalvings.
KeyLayout roomy_layout(int dimension, const Bounds& bounds, std::int64_t batch_size);

struct KeyList {
  KeyLayout layout{};
  std::int32_t batch_size = 0;
  Buffer<std::uint64_t> keys;   // in the order of the coordinates
};

/// Checks coordinates as `CoordinateSet::create` promises, duplicates aside, and encodes them.
KeyList encode_coordinates(ConstTensorView coordinates, const CoordinateOptions& options);

/// Smallest and largest coordinate per axis; zero when there are none.
Bounds bounds_of(ConstTensorView coordinates);

/// The keys of a set in another layout, in rank order; they need not ascend.
Buffer<std::uint64_t> keys_in_layout(const CoordinateSet& set, const KeyLayout& layout);

/// [0, size) as int32: the payload that a sort turns into an order.
Buffer<std::int32_t> identity_order(std::int64_t size);

}   // namespace pumice
