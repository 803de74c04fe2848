// What every format is cut from: which input row meets which output row, and through which offset.
// A kernel map is one maker of relations; a graph with typed edges is another.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/maps/kernel_map.hpp>

namespace pumice {

namespace cuda {
class DeviceFormats;
}

/// Looks at a relation, in either direction. Pairs are grouped by offset: those of offset k are
/// [offset_begin[k], offset_begin[k + 1]). Of a relation on a device the host sees the numbers of
/// offsets and rows and no pairs.
struct RelationView {
  std::int64_t offsets = 0;   // K: offsets of a kernel, types of edges
  std::int64_t in_rows = 0;   // on a device: room for so many
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
  /// Row meets itself through offset K / 2, for all rows, and the pairs of offset K - 1 - k are
  /// those of offset k the other way round.
  bool has_identity_offset = false;
  /// Within an offset no output row and no input row repeats, which is so in every kernel map. What
  /// relies on it refuses other relations.
  bool unique_rows = true;
  Device device{};
  cuda::DeviceFormats* formats = nullptr;   // on a device: what is cut of it; null on the CPU
  bool is_transposed = false;               // whether `in` of the view is `out` of the relation

  /// 0 where only the device knows.
  std::int64_t pairs() const { return static_cast<std::int64_t>(in.size()); }
  std::int64_t pairs_of(std::int64_t offset) const {
    return offset_begin[static_cast<std::size_t>(offset) + 1] -
           offset_begin[static_cast<std::size_t>(offset)];
  }
};

/// A kernel map as a relation, in the direction of the view; valid as long as the map. Lists are
/// taken as they are (check_lists looks at a caller's own).
RelationView relation_of(const KernelMapView& map);
/// The same pairs seen from the other side. Costs nothing.
RelationView transposed(const RelationView& relation);

}   // namespace pumice
