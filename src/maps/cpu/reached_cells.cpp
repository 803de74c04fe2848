// Reached cells are gathered as bits of blocks, never as a list of keys: each chunk of inputs fills
// a small table of blocks, and only these few are sorted and merged. A 3x3x3 kernel reaches 27
// cells an input but, in a scan, only some 1.5 blocks.
#include "maps/cpu/reached_cells.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include <pumice/core/parallel.hpp>
#include <pumice/core/radix_sort.hpp>

#include "coords/cpu/compact.hpp"
#include "coords/cpu/coordinate_set_builder.hpp"
#include "coords/cpu/key_list.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kChunk = 2048;   // input rows, whose table of blocks stays in L2

/// Blocks and the cells seen in them.
class BlockTable {
 public:
  BlockTable() : slots_(64, -1) {}

  void insert(std::uint64_t key) {
    const std::uint64_t block = key >> kBlockBits;
    if (block != last_key_) {
      last_key_ = block;
      last_ = find_or_add(block);
    }
    words_[last_] |= std::uint64_t{1} << (key & (kBlockCells - 1));
  }
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::size_t slot_of(std::uint64_t block) const {
    std::size_t slot = block_hash(block) & (slots_.size() - 1);
    while (slots_[slot] >= 0 && keys_[static_cast<std::size_t>(slots_[slot])] != block) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }
  std::size_t find_or_add(std::uint64_t block) {
    std::size_t slot = slot_of(block);
    if (slots_[slot] < 0) {
      if (2 * (keys_.size() + 1) > slots_.size()) {
        grow();
        slot = slot_of(block);
      }
      slots_[slot] = static_cast<std::int32_t>(keys_.size());
      keys_.push_back(block);
      words_.push_back(0);
    }
    return static_cast<std::size_t>(slots_[slot]);
  }
  void grow() {
    slots_.assign(2 * slots_.size(), -1);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      slots_[slot_of(keys_[i])] = static_cast<std::int32_t>(i);
    }
  }

  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> words_;
  std::vector<std::int32_t> slots_;
  std::uint64_t last_key_ = ~std::uint64_t{0};   // no block has it
  std::size_t last_ = 0;
};

/// Cells per axis that can be reached, or none.
std::optional<AxisRanges> reachable(const CoordinateSet& from, const OffsetAxes& offsets,
                                    const std::optional<Axes>& shape) {
  if (from.size() == 0) return std::nullopt;
  const Bounds bounds = bounds_of(from.coordinates());
  AxisRanges ranges;
  for (int axis = 0; axis < from.dimension(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    AxisRange range = offsets.reach(axis, {bounds.low[at], bounds.high[at]});
    if (shape) {
      range.low = std::max<std::int64_t>(range.low, 0);
      range.high = std::min<std::int64_t>(range.high, std::int64_t{(*shape)[at]} - 1);
    }
    if (range.low > range.high) return std::nullopt;
    PUMICE_EXPECTS(range.low >= std::numeric_limits<std::int32_t>::min() &&
                       range.high <= std::numeric_limits<std::int32_t>::max(),
                   "coordinates: outputs on axis ", axis, " would lie from ", range.low, " to ",
                   range.high, ", which int32 cannot hold; move the input towards 0");
    ranges[at] = range;
  }
  return ranges;
}

KeyLayout layout_of(const AxisRanges& ranges, int dimension, std::int32_t batch_size) {
  Bounds bounds;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    bounds.low[at] = ranges[at].low;
    bounds.high[at] = ranges[at].high;
  }
  return roomy_layout(dimension, bounds, batch_size);
}

BlockTable reach_from(const CoordinateSet& from, std::int64_t begin, std::int64_t end,
                      const OffsetAxes& offsets, const AxisRanges& ranges,
                      const KeyLayout& layout) {
  BlockTable table;
  std::vector<std::uint64_t> parts(offsets.part_count());
  for (std::int64_t rank = begin; rank < end; ++rank) {
    const std::uint64_t key = from.sorted_keys()[static_cast<std::size_t>(rank)];
    AxisBounds cell{};
    for (int axis = 0; axis < layout.dimension; ++axis) {
      cell[static_cast<std::size_t>(axis)] = decode_axis(from.layout(), key, axis);
    }
    offsets.find_parts(layout, ranges, cell.data(), parts);
    std::uint64_t batch = 0;
    if (layout.batch_bits > 0) {
      batch = static_cast<std::uint64_t>(decode_batch(from.layout(), key)) << layout.batch_shift;
    }
    for (std::size_t k = 0; k < offsets.offsets(); ++k) {
      const std::uint64_t reached = offsets.key(k, parts) | batch;
      if ((reached & OffsetAxes::kNoCell) == 0) table.insert(reached);
    }
  }
  return table;
}

struct Blocks {
  Buffer<std::uint64_t> keys;
  Buffer<std::uint64_t> words;
};

/// The blocks of all tables, sorted, each once.
Blocks merge(const std::vector<BlockTable>& tables, int bits) {
  std::vector<std::int64_t> first(tables.size() + 1, 0);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    first[i + 1] = first[i] + static_cast<std::int64_t>(tables[i].keys().size());
  }
  PUMICE_EXPECTS(first.back() <= std::numeric_limits<std::int32_t>::max(),
                 "outputs: over 2147483647 blocks are reached; use a smaller kernel or input");
  Buffer<std::uint64_t> keys(first.back());
  Buffer<std::uint64_t> words(first.back());
  parallel_for(
      static_cast<std::int64_t>(tables.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          std::copy(tables[i].keys().begin(), tables[i].keys().end(), keys.data() + first[i]);
          std::copy(tables[i].words().begin(), tables[i].words().end(), words.data() + first[i]);
        }
      });
  Buffer<std::int32_t> order = identity_order(keys.size());
  radix_sort_pairs(keys.span(), order.span(), bits);
  const Compaction starts(keys.size(),
                          [&keys](std::int64_t i) { return i == 0 || keys[i] != keys[i - 1]; });
  Blocks blocks{Buffer<std::uint64_t>(starts.kept()), Buffer<std::uint64_t>(starts.kept())};
  starts.for_each([&](std::int64_t i, std::int64_t block) {
    std::uint64_t word = 0;
    for (std::int64_t j = i; j < keys.size() && keys[j] == keys[i]; ++j)
      word |= words[order[j]];
    blocks.keys[block] = keys[i];
    blocks.words[block] = word;
  });
  return blocks;
}

Buffer<std::uint64_t> cells_of(const Blocks& blocks) {
  constexpr std::int64_t kBlocksPerChunk = 1024;
  const std::int64_t size = blocks.keys.size();
  std::vector<std::int64_t> first(
      static_cast<std::size_t>((size + kBlocksPerChunk - 1) / kBlocksPerChunk) + 1, 0);
  for (std::int64_t block = 0; block < size; ++block) {
    first[static_cast<std::size_t>(block / kBlocksPerChunk) + 1] +=
        std::popcount(blocks.words[block]);
  }
  for (std::size_t chunk = 1; chunk < first.size(); ++chunk)
    first[chunk] += first[chunk - 1];
  PUMICE_EXPECTS(first.back() <= std::numeric_limits<std::int32_t>::max(),
                 "outputs: ", first.back(), " cells are reached; a set holds at most 2147483647");
  Buffer<std::uint64_t> keys(first.back());
  parallel_for(size, kBlocksPerChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t position = first[static_cast<std::size_t>(begin / kBlocksPerChunk)];
    for (std::int64_t block = begin; block < end; ++block) {
      for (std::uint64_t left = blocks.words[block]; left != 0; left &= left - 1) {
        keys[position++] =
            blocks.keys[block] << kBlockBits | static_cast<std::uint64_t>(std::countr_zero(left));
      }
    }
  });
  return keys;
}

}   // namespace

CoordinateSetPtr reached_cells(const CoordinateSet& from, const KernelWindow& window, Reach reach,
                               const CoordinateOptions& options) {
  const OffsetAxes offsets(window, reach);
  const auto ranges = reachable(from, offsets, options.spatial_shape);
  if (!ranges) {
    return CoordinateSetBuilder::build({}, {}, {},
                                       roomy_layout(from.dimension(), {}, from.batch_size()),
                                       from.batch_size(), options);
  }
  const KeyLayout layout = layout_of(*ranges, from.dimension(), from.batch_size());
  const std::int64_t grain =
      std::max<std::int64_t>(1, kChunk * 27 / static_cast<std::int64_t>(offsets.offsets()));
  std::vector<BlockTable> tables(static_cast<std::size_t>((from.size() + grain - 1) / grain));
  parallel_for(from.size(), grain, [&](std::int64_t begin, std::int64_t end) {
    tables[static_cast<std::size_t>(begin / grain)] =
        reach_from(from, begin, end, offsets, *ranges, layout);
  });
  const Blocks blocks = merge(tables, key_bits(layout) - kBlockBits);
  return CoordinateSetBuilder::build(cells_of(blocks), {}, {}, layout, from.batch_size(), options);
}

}   // namespace pumice
