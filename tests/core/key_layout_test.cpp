// Keys: coordinates come back, order is Morton's, blocks have 64 cells, halving is a shift.
#include <pumice/shared/key_layout.h>

#include <cstddef>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

namespace pumice {
namespace {

/// A layout by the header's definition: axes take turns from bit 0 until their bits run out.
KeyLayout make_layout(std::vector<int> bits, std::vector<std::int64_t> bias, int batch_bits) {
  KeyLayout layout;
  layout.dimension = static_cast<int>(bits.size());
  layout.batch_bits = batch_bits;
  int position = 0;
  for (int round = 0; position >= 0; ++round) {
    bool any = false;
    for (std::size_t axis = 0; axis < bits.size(); ++axis) {
      if (round >= bits[axis]) continue;
      layout.mask[axis] |= std::uint64_t{1} << position++;
      any = true;
    }
    if (!any) break;
  }
  for (std::size_t axis = 0; axis < bits.size(); ++axis) {
    layout.bits[axis] = bits[axis];
    layout.bias[axis] = bias[axis];
  }
  layout.batch_shift = position;
  return layout;
}

const std::vector<KeyLayout>& layouts() {
  static const std::vector<KeyLayout> all{
      make_layout({20}, {1 << 19}, 3),
      make_layout({13, 5}, {4096, 16}, 2),
      make_layout({12, 12, 7}, {2048, 2048, 64}, 4),
      make_layout({3, 30, 5}, {4, 1 << 29, 16}, 0),
      make_layout({9, 3, 8, 4}, {256, 4, 128, 8}, 5),
  };
  return all;
}

TEST(KeyLayout, CoordinatesComeBackFromTheirKeys) {
  Random random(1);
  for (const KeyLayout& layout : layouts()) {
    for (int i = 0; i < 2000; ++i) {
      std::int64_t coordinate[kMaxDimension] = {};
      for (int axis = 0; axis < layout.dimension; ++axis) {
        coordinate[axis] =
            random.integer(0, (std::int64_t{1} << layout.bits[axis]) - 1) - layout.bias[axis];
        EXPECT_TRUE(in_layout(layout, axis, coordinate[axis]));
      }
      const std::int64_t batch = random.integer(0, (1 << layout.batch_bits) - 1);
      const std::uint64_t key = encode_key(layout, batch, coordinate);
      EXPECT_EQ(decode_batch(layout, key), batch);
      for (int axis = 0; axis < layout.dimension; ++axis) {
        EXPECT_EQ(decode_axis(layout, key, axis), coordinate[axis]);
      }
      EXPECT_EQ(key >> key_bits(layout), 0u);
    }
  }
}

TEST(KeyLayout, CoordinatesOutsideAreToldApart) {
  for (const KeyLayout& layout : layouts()) {
    EXPECT_FALSE(in_layout(layout, 0, -layout.bias[0] - 1));
    EXPECT_FALSE(in_layout(layout, 0, (std::int64_t{1} << layout.bits[0]) - layout.bias[0]));
  }
}

TEST(KeyLayout, HalvingIsAShiftWithFloorSemantics) {
  Random random(2);
  for (const KeyLayout& layout : layouts()) {
    if (!can_halve(layout)) continue;
    const KeyLayout coarse = halved(layout);
    for (int i = 0; i < 2000; ++i) {
      std::int64_t coordinate[kMaxDimension] = {};
      std::int64_t half[kMaxDimension] = {};
      for (int axis = 0; axis < layout.dimension; ++axis) {
        coordinate[axis] =
            random.integer(0, (std::int64_t{1} << layout.bits[axis]) - 1) - layout.bias[axis];
        half[axis] = (coordinate[axis] - (coordinate[axis] & 1)) / 2;   // floor
      }
      const std::uint64_t key = encode_key(layout, 1 & layout.batch_bits, coordinate);
      EXPECT_EQ(key >> layout.dimension, encode_key(coarse, 1 & layout.batch_bits, half));
    }
  }
}

TEST(KeyLayout, ABlockIsA64CellBoxOfTheDimensionsShape) {
  const int expected[kMaxDimension + 1][kMaxDimension] = {
      {}, {6, 0, 0, 0}, {3, 3, 0, 0}, {2, 2, 2, 0}, {2, 2, 1, 1}};
  for (int dimension = 1; dimension <= kMaxDimension; ++dimension) {
    for (int axis = 0; axis < dimension; ++axis) {
      EXPECT_EQ(block_axis_bits(dimension, axis), expected[dimension][axis]);
    }
  }
  for (const KeyLayout& layout : layouts()) {
    std::set<std::uint64_t> locals;
    const int dimension = layout.dimension;
    for (int cell = 0; cell < 64; ++cell) {
      std::int64_t coordinate[kMaxDimension] = {};
      int rest = cell;
      for (int axis = 0; axis < dimension; ++axis) {
        const int bits = block_axis_bits(dimension, axis);
        coordinate[axis] = (rest & ((1 << bits) - 1)) - layout.bias[axis];
        rest >>= bits;
      }
      const std::uint64_t key = encode_key(layout, 0, coordinate);
      EXPECT_EQ(key >> kBlockBits, 0u);
      locals.insert(key);
    }
    EXPECT_EQ(locals.size(), 64u);
  }
}

TEST(KeyLayout, PortableAndProcessorBitScattersAgree) {
  constexpr std::uint64_t mask = 0x9249249249249249u;
  constexpr std::uint64_t at_compile_time = deposit_bits(0x2bad5u, mask);
  volatile std::uint64_t value = 0x2bad5u;
  EXPECT_EQ(deposit_bits(value, mask), at_compile_time);
  constexpr std::uint64_t back = extract_bits(at_compile_time, mask);
  EXPECT_EQ(back, 0x2bad5u);
  EXPECT_EQ(extract_bits(at_compile_time | ~mask, mask), back);
}

}   // namespace
}   // namespace pumice
