// Which input row meets which output row through which offset of a kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/maps/kernel_window.hpp>

namespace pumice {

/// Looks at a kernel map, in either direction. Pairs are grouped by offset: those of offset k are
/// [offset_begin[k], offset_begin[k + 1]). Within an offset no output row and no input row repeats.
struct KernelMapView {
  std::int64_t offsets = 0;   // K
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::span<const std::int64_t> offset_begin{};   // [K + 1]
  std::span<const std::int32_t> in{};             // [pairs] input row
  std::span<const std::int32_t> out{};            // [pairs] output row
  /// rank -> output row: the order in which outputs are best visited; empty when rank == row.
  std::span<const std::int32_t> out_order{};
  std::span<const std::int32_t> in_order{};
  /// Whether `out` ranks ascend within an offset, so that a range of ranks is a range of pairs.
  bool sorted_by_out = false;
  bool sorted_by_in = false;
  /// Submanifold, odd and centred: row meets itself through offset K / 2, for all rows, and the
  /// pairs of offset K - 1 - k are those of offset k the other way round.
  bool has_identity_offset = false;

  std::int64_t pairs() const { return static_cast<std::int64_t>(in.size()); }
  std::int64_t pairs_of(std::int64_t offset) const {
    return offset_begin[static_cast<std::size_t>(offset) + 1] -
           offset_begin[static_cast<std::size_t>(offset)];
  }
};

/// The same pairs seen from the other side: what an inverse convolution and the gradient of the
/// input use. Costs nothing.
KernelMapView transposed(const KernelMapView& map);

class KernelMap;
using KernelMapPtr = std::shared_ptr<const KernelMap>;

/// What a search for pairs yields, all of it in buffers and none of it counted on the host: a
/// device fills the same fields.
struct KernelPairs {
  Buffer<std::int64_t> offset_begin;   // [K + 1]
  Buffer<std::int32_t> in;             // [capacity of count] input row
  Buffer<std::int32_t> out;            // [capacity of count] output row
  RowCount count;                      // pairs
  bool sorted_by_out = true;
  bool sorted_by_in = false;
};

class KernelMap {
 public:
  KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out, KernelPairs pairs,
            bool has_identity_offset);

  const KernelWindow& window() const { return window_; }
  const CoordinateSetPtr& in() const { return in_; }
  const CoordinateSetPtr& out() const { return out_; }
  const RowCount& pair_count() const { return pairs_.count; }
  std::int64_t pairs() const { return pairs_.count.host(); }
  /// For the host; valid as long as this map. InternalError where the pairs are on a device.
  KernelMapView view() const;

 private:
  KernelWindow window_;
  CoordinateSetPtr in_;
  CoordinateSetPtr out_;
  KernelPairs pairs_;
  bool has_identity_offset_;
};

}   // namespace pumice
