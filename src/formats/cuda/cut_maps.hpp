// Kernel maps on the device, cut: the tiles and lists of pairs that convolutions and their
// gradients run on.
//
//   tiles of 128 rows ──┐
//   tiles of 256 rows ──┼──► one search, one order of the outputs, then a cut for each
//   pairs             ──┘
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pumice/formats/cut_arguments.h>
#include <pumice/shared/pair_list_ref.h>
#include <pumice/shared/tile_map.h>
#include <pumice/core/arena.hpp>

#include "jit/kernel_runner.hpp"
#include "maps/cuda/match_batch.hpp"

namespace pumice::cuda {

struct TileOptions {
  std::int32_t tile_rows = 128;   // 64 · m, m up to 16
  std::int32_t splits = 1;        // up to kMaxSplits
  bool sort_by_mask = true;       // else outputs stay in the order of their keys
  /// Room for entries; 0: as many as there could be, a table of rows x offsets.
  std::int64_t entry_capacity = 0;
};

struct PairOptions {
  std::int64_t pair_capacity = 0;   // 0: as many as there could be
};

/// A map that was searched, and its outputs in an order: what tiles of another height and lists of
/// pairs are made from without a search, in 8 bytes a row for up to 32 offsets.
struct OrderedMap {
  std::shared_ptr<MatchedMap> match;
  std::int32_t splits = 0;   // 0: outputs have not been ordered
  bool sorted_by_mask = true;
  Buffer<std::uint16_t> label;
  Buffer<std::int64_t> ordered_rows;
  std::shared_ptr<const std::array<Buffer<std::uint32_t>, 2>> sorts;   // of the maps of a batch
  Buffer<std::uint32_t> unsorted;          // where outputs stay as they are, the numbers of all
  const std::uint32_t* sorted = nullptr;   // in one of them

  /// Whether these tiles can be cut from it without ordering outputs again.
  bool is_ordered_for(const TileOptions& tiles) const {
    return splits == tiles.splits && sorted_by_mask == tiles.sort_by_mask;
  }
};

/// What is to be cut from a map.
struct CutRequest {
  MapSearch map{};
  std::optional<TileOptions> tiles{};
  std::optional<PairOptions> pairs{};
  /// Offset K - 1 - k leads back from where offset k leads to, so that the tiles are those of the
  /// transposed map too.
  bool is_centred = false;
  /// What was found when the same map was cut before; null: it is searched.
  std::shared_ptr<OrderedMap> earlier{};
  bool keeps_order = false;   // for other cuts of the same map
};

/// What a request led to. Everything in it is counted on the device.
class CutMap {
 public:
  TileMapRef tiles() const { return tiles_; }
  /// Of a centred map, those of its transpose.
  TileMapRef mirrored_tiles() const {
    TileMapRef tiles = tiles_;
    tiles.entry = mirrored_.data();
    return tiles;
  }
  PairListRef pairs() const { return pairs_; }
  /// What other cuts of the same map can be made from; null unless the request keeps it.
  const std::shared_ptr<OrderedMap>& ordered() const { return ordered_; }
  /// How many entries the tiles have; the word keeps the number that was needed.
  RowCountRef entries() const { return entries_; }
  /// Bytes of everything that stays after the build.
  std::int64_t bytes() const;

 private:
  friend class CutBatchBuilder;
  TileMapRef tiles_{};
  PairListRef pairs_{};
  RowCountRef entries_{};
  Buffer<TileRun> tile_order_;
  Buffer<TileEntry> entry_;
  Buffer<TileEntry> mirrored_;
  Buffer<std::int32_t> in_row_;
  Buffer<std::int32_t> out_row_;
  Buffer<std::int64_t> offset_begin_;
  Buffer<std::int32_t> pair_in_;
  Buffer<std::int32_t> pair_out_;
  Buffer<std::int64_t> counts_;   // tiles, entries, pairs
  std::shared_ptr<OrderedMap> ordered_;
};

/// Cuts in the order of the requests, up to 16 at once: a fill, a launch to search, then for tiles
/// a launch for keys, a launch a sort pass (3 for 27 offsets, 1 for 8) and 1, for pairs 1. Requests
/// of one map that differ in the height of tiles, or want pairs, share a search and an order, and
/// so do later ones that are given it; then tiles and pairs are a fill and a launch each.
/// What is to be zero comes from `zeroed` as far as that goes, which an earlier launch on the
/// stream fills with zeros; the rest takes a fill.
std::vector<CutMap> cut_maps(jit::KernelRunner& runner, std::span<const CutRequest> requests,
                             const std::shared_ptr<ArenaAllocator>& zeroed = {});

/// Bytes of zeros that suffice to cut these without a fill. Of the sets only the rows that there is
/// room for in the outputs are asked.
std::int64_t zeroed_bytes(std::span<const CutRequest> requests);

}   // namespace pumice::cuda
