// Bits per axis, bias and interleaving of a key layout.
#include <pumice/core/key_layout.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

constexpr int kMostKeyBits = 63;

int bits_for(std::int64_t largest) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest)));
}

// Gives each axis its key bits round by round, axis 0 lowest; an axis out of bits drops out.
void interleave(KeyLayout& layout) {
  int position = 0;
  for (int round = 0; position < layout.batch_shift; ++round) {
    for (int axis = 0; axis < layout.dimension; ++axis) {
      if (round < layout.bits[axis]) layout.mask[axis] |= std::uint64_t{1} << position++;
    }
  }
}

}   // namespace

KeyLayout layout_for_bounds(int dimension, std::span<const std::int64_t> low,
                            std::span<const std::int64_t> high, std::int64_t batch_size,
                            int levels) {
  PUMICE_ENSURES(dimension >= 1 && dimension <= kMaxDimension, "dimension ", dimension);
  PUMICE_ENSURES(levels >= 0 && levels <= 32, "levels ", levels);
  PUMICE_ENSURES(batch_size >= 0, "batch size ", batch_size);
  KeyLayout layout;
  layout.dimension = dimension;
  layout.batch_bits = batch_size <= 1 ? 0 : bits_for(batch_size - 1);
  int total = 0;
  for (int axis = 0; axis < dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_ENSURES(low[at] <= high[at], "axis ", axis, " from ", low[at], " to ", high[at]);
    // An arithmetic shift rounds towards minus infinity, so no cell is ever negative.
    const std::int64_t origin = (low[at] >> levels) * (std::int64_t{1} << levels);
    layout.bias[axis] = -origin;
    layout.bits[axis] =
        std::max(bits_for(high[at] - origin), block_axis_bits(dimension, axis) + levels);
    total += layout.bits[axis];
  }
  if (total + layout.batch_bits > kMostKeyBits) {
    std::ostringstream extents;
    for (int axis = 0; axis < dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      extents << (axis == 0 ? "" : " x ") << high[at] - low[at] + 1;
    }
    detail::raise_user("coordinates span ", extents.str(), " cells in ", batch_size,
                       " batch items, which takes ", total + layout.batch_bits,
                       " bits of key where ", kMostKeyBits,
                       " are there; crop the range or use larger cells");
  }
  layout.batch_shift = total;
  interleave(layout);
  return layout;
}

}   // namespace pumice
