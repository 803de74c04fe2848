// Which input row meets which output row through which offset of a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/maps/kernel_window.hpp>

namespace pumice {

class KernelMap;

/// Looks at a kernel map, in either direction. Pairs are grouped by offset: those of offset k are
/// [offset_begin[k], offset_begin[k + 1]). Within an offset no output row and no input row repeats.
/// Of a map on a device the host sees the numbers of offsets and rows and no pairs.
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
  Device device{};
  const KernelMap* map = nullptr;   // that is looked at; null for a view of other lists
  bool is_transposed = false;       // whether `in` of the view is `out` of that map

  /// 0 where only the device knows.
  std::int64_t pairs() const { return static_cast<std::int64_t>(in.size()); }
  std::int64_t pairs_of(std::int64_t offset) const {
    return offset_begin[static_cast<std::size_t>(offset) + 1] -
           offset_begin[static_cast<std::size_t>(offset)];
  }
};

/// The same pairs seen from the other side: what an inverse convolution and the gradient of the
/// input use. Costs nothing.
KernelMapView transposed(const KernelMapView& map);

/// The sites of the rows that a view leads from and to, for as long as the map lives; null for a
/// view of other lists.
const CoordinateSet* in_sites(const KernelMapView& map);
const CoordinateSet* out_sites(const KernelMapView& map);

/// How many output rows are in use, as the set of the outputs counts them, for as long as the map
/// lives; null for a view of other lists, whose rows all are.
const RowCount* out_row_count(const KernelMapView& map);

/// UserError, in the name of `op`, unless the lists of a view lead to rows that there are and keep
/// what the view says of them. Of the view that a KernelMap gave that is known; lists of the
/// caller's own cost a pass over all pairs.
void check_lists(const KernelMapView& map, const char* op);

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

/// What a later stage makes of a map and keeps with it: on a device, the formats that operators run
/// on.
class KeptWithMap {
 public:
  KeptWithMap() = default;
  KeptWithMap(const KeptWithMap&) = delete;
  KeptWithMap& operator=(const KeptWithMap&) = delete;
  virtual ~KeptWithMap() = default;
};

class KernelMap : public std::enable_shared_from_this<KernelMap> {
 public:
  /// On the CPU. UserError for pairs of rows that there are not (see check_lists).
  KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out, KernelPairs pairs,
            bool has_identity_offset);
  /// For who has searched the pairs in these sets: they are not looked at again.
  static KernelMapPtr of_search(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                                KernelPairs pairs, bool has_identity_offset);
  /// Between two sets on one device, where what convolutions run on is made when first asked for.
  /// `outputs_are_finer`: out = in · stride − padding + offset · dilation, a transposed
  /// convolution.
  static KernelMapPtr on_device(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                                bool outputs_are_finer, bool has_identity_offset);

  const KernelWindow& window() const { return window_; }
  const CoordinateSetPtr& in() const { return in_; }
  const CoordinateSetPtr& out() const { return out_; }
  const RowCount& pair_count() const { return pairs_.count; }
  std::int64_t pairs() const { return pairs_.count.host(); }
  Device device() const { return in_->device(); }
  /// On a device: whether outputs lie on the finer of the two sets, as those of a transposed
  /// convolution.
  bool outputs_are_finer() const { return outputs_are_finer_; }
  /// Valid as long as this map.
  KernelMapView view() const&;
  KernelMapView view() const&& = delete;
  /// What a later stage keeps with this map: made by whoever asks first, once, whatever threads
  /// ask.
  KeptWithMap& kept(const std::function<std::unique_ptr<KeptWithMap>()>& make) const;

 private:
  KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
            bool has_identity_offset);
  /// InternalError where their lengths do not fit each other.
  void set_pairs(KernelPairs pairs);

  KernelWindow window_;
  CoordinateSetPtr in_;
  CoordinateSetPtr out_;
  KernelPairs pairs_{};
  bool has_identity_offset_;
  bool outputs_are_finer_ = false;
  mutable std::once_flag kept_once_;
  mutable std::unique_ptr<KeptWithMap> kept_;
};

}   // namespace pumice
