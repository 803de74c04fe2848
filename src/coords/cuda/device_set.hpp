// A coordinate set whose rows are counted on the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <pumice/coords/level_arguments.h>
#include <pumice/shared/coordinate_set_ref.h>
#include <pumice/core/buffer.hpp>

#include "coords/cuda/fill_list.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// How much room a set has. Blocks are at most as many as rows; a scan at 5 cm has a third.
struct SetCapacity {
  std::int64_t rows = 0;
  std::int64_t blocks = 0;
  std::int64_t likely_rows = 0;   // of those, as far as is known; 0: all
};
inline SetCapacity capacity_for_rows(std::int64_t rows) {
  return {rows, rows};
}

/// The memory of a set. Rows come in key order unless it has an order.
class DeviceSet {
 public:
  DeviceSet() = default;
  /// Asks `fill` to empty the table of blocks. `name` is who is named when the room does not
  /// suffice: "level 2".
  DeviceSet(jit::KernelRunner& runner, const KeyLayout& layout, SetCapacity capacity,
            bool has_order, const std::string& name, FillList& fill);

  const KeyLayout& layout() const { return layout_; }
  SetCapacity capacity() const { return capacity_; }
  CoordinateSetRef ref() const;
  RowCountRef rows() const { return {counts_.data(), capacity_.rows}; }
  RowCountRef blocks() const { return {counts_.data() + 1, capacity_.blocks}; }
  std::int32_t* order() { return order_.data(); }
  /// The word in which the device counts the rows.
  std::int64_t* row_count() { return counts_.data(); }
  /// What the device counted, where somebody has read it back: rows, blocks.
  const std::optional<SetCapacity>& counted() const { return counted_; }
  void note_counts(std::int64_t rows, std::int64_t blocks) { counted_ = SetCapacity{rows, blocks}; }
  /// Where kernels write it: the distinct values of their keys >> `shift`.
  Level level(int shift);

 private:
  KeyLayout layout_{};
  SetCapacity capacity_{};
  std::optional<SetCapacity> counted_{};
  Buffer<std::int64_t> counts_;   // rows, blocks
  Buffer<std::uint64_t> keys_;
  Buffer<std::int32_t> order_;
  Buffer<std::uint64_t> block_key_;
  Buffer<std::uint64_t> occupancy_;
  Buffer<std::int32_t> base_rank_;
  Buffer<BlockSlot> slots_;
  Buffer<std::int32_t> slot_rank_;
  std::int32_t row_site_ = 0;
  std::int32_t block_site_ = 0;
};

/// The same of a whole set, which then knows its blocks too.
std::int64_t wait_for_sites(DeviceSet& set, StreamView stream, const char* what);

/// A count that kernels write, read back: how many sites `what` has. Waits for the stream;
/// UserError while that is recorded into a graph.
std::int64_t wait_for_sites(const std::int64_t* count, StreamView stream, const char* what);

}   // namespace pumice::cuda
