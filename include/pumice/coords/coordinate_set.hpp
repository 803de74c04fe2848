// The sites of a sparse tensor: which cells are occupied, and in which row each one's features are.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <pumice/shared/key_layout.h>
#include <pumice/core/key_layout.hpp>
#include <pumice/core/row_count.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice {

/// One number an axis; only the first `dimension` count. `Axes{2, 2, 2}` or `axes(3, 2)`.
using Axes = std::array<std::int32_t, kMaxDimension>;
constexpr Axes axes(int dimension, std::int32_t value) {
  Axes result{};
  for (int axis = 0; axis < dimension; ++axis)
    result[static_cast<std::size_t>(axis)] = value;
  return result;
}

namespace cuda {
class DeviceSet;
}

class CoordinateSet;
using CoordinateSetPtr = std::shared_ptr<const CoordinateSet>;

/// The blocks of a coordinate set in key order, and a table that finds them. A row is
/// `order[base_rank + popcount(occupancy below the cell)]`.
struct BlockIndexRef {
  KeyLayout layout{};
  std::int64_t blocks = 0;
  const std::uint64_t* block_key = nullptr;   // [blocks], ascending: key >> kBlockBits
  const std::uint64_t* occupancy = nullptr;   // [blocks], bit = local cell
  const std::int32_t* base_rank = nullptr;    // [blocks], rank of the block's first cell
  const std::int32_t* order = nullptr;        // [rows], rank -> row; null when they are equal
  const std::int32_t* slots = nullptr;        // [slot_mask + 1], open addressing, -1 when free
  std::uint32_t slot_mask = 0;

  /// Block number of `block_key`, or -1.
  std::int64_t find_block(std::uint64_t key) const;
  /// Row of the cell with this key, or -1 when it is not occupied.
  std::int32_t find_row(std::uint64_t key) const;
  /// Rank of an occupied cell of a block.
  std::int32_t rank_in_block(std::int64_t block, int local) const;
};

/// Smallest and largest coordinate of each axis, both included.
struct CoordinateBounds {
  Axes low{};
  Axes high{};
};

struct CoordinateOptions {
  /// Cell size in cells of the finest level, per axis. Pure bookkeeping: it tells sets of
  /// different levels apart and lets coordinates be scaled back.
  Axes stride{1, 1, 1, 1};
  /// Extent of the grid per axis, where there is one: coordinates lie in [0, shape), and strided
  /// sets made from this one are cut to their own shape, as spconv does. Absent: unbounded.
  std::optional<Axes> spatial_shape{};
  /// Number of batch items; absent: largest batch index + 1. Trailing empty items need saying.
  std::optional<std::int32_t> batch_size{};
  /// Bounds that every coordinate is known to keep, which needs `batch_size` too; absent: those
  /// that the coordinates have. Declared bounds make the layout of keys a constant, the same for
  /// every set of a stream of scans, and save a pass over the coordinates. They are of this set and
  /// of what is pruned from it; other sets made from it have none.
  std::optional<CoordinateBounds> bounds{};
};

/// An immutable set of distinct integer coordinates (batch, axis 0 … axis D-1), D = 1 to 4,
/// negative allowed on spatial axes, in rows whose order is the caller's. Ranks count the same
/// sites in Morton order, which is what neighbouring memory accesses follow.
class CoordinateSet {
 public:
  /// coordinates: int32 [N, 1 + D], copied. UserError for a duplicate (naming both rows), a
  /// negative batch index, a coordinate outside `spatial_shape` or `bounds`, or extents over 2^63
  /// cells. Of coordinates on a device the set is made there: with declared bounds and batch size
  /// that only enqueues, and a mistake is raised by the next call that waits for the stream;
  /// without, they are brought to the host to be looked at.
  static CoordinateSetPtr create(ConstTensorView coordinates,
                                 const CoordinateOptions& options = {});

  /// From keys already sorted ascending and distinct: rows come in that order.
  static CoordinateSetPtr from_sorted_keys(Buffer<std::uint64_t> keys, const KeyLayout& layout,
                                           const CoordinateOptions& options);

  /// The same sites in the same rows on the device of `stream`: itself, or from the CPU, enqueued
  /// there; or back to the CPU, waited for. UserError from one device to another: go by the CPU.
  static CoordinateSetPtr copy_to(const CoordinateSetPtr& set, StreamView stream);

  /// Where its sites are. What walks through them on the host (coordinates, sorted_keys, index,
  /// find) is for sets on the CPU.
  Device device() const { return stream_.device; }
  StreamView stream() const { return stream_; }

  int dimension() const { return index_.layout.dimension; }
  std::int32_t batch_size() const { return batch_size_; }
  /// Sets of a plan have room for more rows than they have, and the device alone counts them.
  const RowCount& rows() const { return rows_; }
  /// How many rows there are; InternalError where only the device knows.
  std::int64_t size() const { return rows_.host(); }
  const Axes& stride() const { return options_.stride; }
  const std::optional<Axes>& spatial_shape() const { return options_.spatial_shape; }
  const CoordinateOptions& options() const { return options_; }

  /// int32 [rows().capacity(), 1 + D], in row order, where the sites are. On a device they are
  /// worked out when asked for, on the stream of the set: again each time where the device alone
  /// counts rows, since a graph may have made others meanwhile.
  const Tensor& coordinates() const {
    if (decodes_) decode_on_device();
    return coordinates_;
  }
  /// Keys in rank order, [N].
  std::span<const std::uint64_t> sorted_keys() const { return keys_.span(); }
  const KeyLayout& layout() const { return index_.layout; }
  const BlockIndexRef& index() const { return index_; }
  /// Whether rows already come in Morton order, so that rank == row.
  bool in_key_order() const { return index_.order == nullptr; }
  /// Row of a coordinate given as batch, axis 0 …, or -1. Coordinates outside any bounds are
  /// simply not there.
  std::int32_t find(std::span<const std::int32_t> coordinate) const;
  /// Whether both hold the same sites in the same rows.
  bool same_rows(const CoordinateSet& other) const;

  /// For the back end: what kernels read; null on the CPU.
  const std::shared_ptr<const cuda::DeviceSet>& on_device() const { return on_device_; }

 private:
  CoordinateSet() = default;
  void decode_on_device() const;

  StreamView stream_{};
  CoordinateOptions options_{};
  std::int32_t batch_size_ = 0;
  RowCount rows_{};
  mutable Tensor coordinates_{};
  mutable std::mutex decoding_{};
  mutable std::uint64_t decoded_in_ = 0;     // the recording that does it; 0: none
  mutable std::vector<Tensor> recorded_{};   // what graphs fill
  bool decodes_ = false;                     // coordinates_ follow from keys on the device
  Buffer<std::uint64_t> keys_{};
  Buffer<std::int32_t> order_{};
  Buffer<std::uint64_t> block_key_{};
  Buffer<std::uint64_t> occupancy_{};
  Buffer<std::int32_t> base_rank_{};
  Buffer<std::int32_t> slots_{};
  BlockIndexRef index_{};
  std::shared_ptr<const cuda::DeviceSet> on_device_{};
  friend struct CoordinateSetBuilder;   // src/coords/cpu/coordinate_set_builder.hpp
  friend struct DeviceSetBuilder;       // src/coords/cuda/coordinate_set.hpp
};

inline std::int64_t BlockIndexRef::find_block(std::uint64_t key) const {
  for (std::uint32_t slot = block_hash(key) & slot_mask;; slot = (slot + 1) & slot_mask) {
    const std::int32_t block = slots[slot];
    if (block < 0 || block_key[block] == key) return block;
  }
}

inline std::int32_t BlockIndexRef::rank_in_block(std::int64_t block, int local) const {
  const std::uint64_t below = occupancy[block] & ((std::uint64_t{1} << local) - 1);
  return base_rank[block] + std::popcount(below);
}

inline std::int32_t BlockIndexRef::find_row(std::uint64_t key) const {
  const std::int64_t block = find_block(key >> kBlockBits);
  if (block < 0) return -1;
  const int local = static_cast<int>(key & (kBlockCells - 1));
  if ((occupancy[block] >> local & 1) == 0) return -1;
  const std::int32_t rank = rank_in_block(block, local);
  return order == nullptr ? rank : order[rank];
}

}   // namespace pumice
