// What convolutions on a device run on, made from a kernel map when first asked for and kept with
// it: tiles of outputs, in either direction, and the pairs that gradients of weights sum over. Each
// direction is searched once, where tiles are asked for first:
//
//   tiles of a height ──► tiles of another height     which outputs have which offsets, and their
//                    └──► pairs of the same direction   order, are kept (MatchedMap)
//   tiles of a centred map ──► those of its transpose  the same but for the numbers of offsets
//   an offset that goes nowhere ──► pairs              every row with itself
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <pumice/maps/kernel_map.hpp>

#include "maps/cuda/build_maps.hpp"
#include "maps/cuda/identity_pairs.hpp"
#include "maps/cuda/pair_tiles.hpp"

namespace pumice::cuda {

/// How outputs are cut into tiles.
struct TileCut {
  std::int32_t tile_rows = 128;
  std::int32_t splits = 1;
  bool sort_by_mask = true;

  friend bool operator==(const TileCut&, const TileCut&) = default;
};

/// Which tiles of a map somebody wants.
struct TilesWanted {
  bool is_transposed = false;   // of the map's inputs instead of its outputs
  TileCut cut{};

  friend bool operator==(const TilesWanted&, const TilesWanted&) = default;
};

/// In which order a tile's entries come. Of the transpose of a centred map, tiles in any order cost
/// nothing; ascending ones are for those to whom the first offset is another than the last.
enum class OffsetOrder : unsigned char { any, ascending };

/// Any thread may ask; work is enqueued on the stream of the map's sets. What is missing is made
/// without the mutex, since an allocator may wait for a lock that somebody holds who waits for it
/// (Python's); what two threads made at once one of them gives back.
///
/// What is made while a graph is recorded is there once that graph has run, and not before: it is
/// kept apart, for those who ask in the same recording. They find what was made before it, too.
class MapStructures {
 public:
  /// `window`: where it is on the device already; null: copied there when needed.
  explicit MapStructures(bool outputs_are_finer, std::shared_ptr<const DeviceWindow> window = {})
      : outputs_are_finer_(outputs_are_finer), window_(std::move(window)) {}

  /// Tiles of the rows that `view` calls its outputs. `view` is of the map that owns this.
  const TileMapRef& tiles(const KernelMapView& view, const TileCut& cut,
                          OffsetOrder order = OffsetOrder::any);

  /// The pairs of `view`, offset by offset; of both directions there is one list.
  PairListRef pairs(const KernelMapView& view);

  /// The pairs of `view` cut into tiles.
  const TileMapRef& pair_tiles(const KernelMapView& view, const PairTileOptions& options);
  /// Which pairs each output row of `view` has.
  const std::int32_t* pair_index(const KernelMapView& view);
  /// Of the set that `view` calls its outputs, as the device counts them.
  static RowCountRef output_rows(const KernelMapView& view);
  /// Where the pairs of each offset begin, on the host: the same in both directions. The first call
  /// waits for the stream of the map's sets; UserError while that is being captured.
  const std::vector<std::int64_t>& wait_for_pair_counts(const KernelMapView& view);

  bool outputs_are_finer() const { return outputs_are_finer_; }
  /// Those to ask, and to keep something in, for work on `stream`: others while it is recorded.
  MapStructures& here(StreamView stream);

  /// For those who build the tiles of many maps at once. What `tiles` was asked for so far:
  /// (Tiles of a centred map count as those of the map itself, whoever asked.)
  struct Asked {
    TilesWanted wanted;
    RowCountRef entries;
  };
  std::vector<Asked> asked();
  /// How they are built, of the map that owns this.
  MapRequest request(const KernelMap& map, const TilesWanted& wanted,
                     std::int64_t entry_capacity = 0);

  /// What was asked for so far, of one map of several passes.
  struct Uses {
    std::vector<TilesWanted> tiles;
    bool pairs = false;
  };
  Uses uses();
  /// Requests for those of `uses` that are not there, of the map that owns this.
  std::vector<MapRequest> missing(const KernelMap& map, const Uses& uses);
  /// Takes what such a request, or one of `request`, led to.
  void keep(const KernelMap& map, const MapRequest& request, DeviceMap made);

 private:
  struct Tiles {
    TilesWanted wanted;
    DeviceMap map;
    TileMapRef ref;
    TileMapRef mirrored;   // of a centred map
    bool asked = false;
  };

  struct TilesOfPairs {
    bool is_transposed;
    PairTileOptions options;
    PairTiles tiles;
  };

  /// Of a recording, beside those `older` than it.
  MapStructures(MapStructures& older, std::uint64_t recording,
                std::shared_ptr<const DeviceWindow> window)
      : outputs_are_finer_(older.outputs_are_finer_),
        older_(&older),
        recording_(recording),
        window_(std::move(window)) {}

  /// Where it is not there yet it is copied to the device, without the mutex.
  const DeviceWindow* window_of(const KernelMap& map);
  MapRequest request_through(const DeviceWindow* window, const KernelMap& map,
                             const TilesWanted& wanted, std::int64_t entry_capacity = 0) const;
  // With the mutex held.
  MapRequest pair_request(const DeviceWindow* window, const KernelMap& map) const;
  Tiles* made_tiles(const TilesWanted& wanted) const;
  // Without it: here, or before this recording.
  bool has_tiles(const TilesWanted& wanted);
  bool has_pairs();

  const bool outputs_are_finer_;
  MapStructures* const older_ = nullptr;   // null but for those of a recording
  const std::uint64_t recording_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MapStructures>> recorded_;   // as long as graphs may run
  std::shared_ptr<const DeviceWindow> window_;
  std::vector<std::unique_ptr<Tiles>> tiles_;            // a handful
  std::array<std::shared_ptr<MatchedMap>, 2> matched_;   // of the map itself, of its transpose
  std::unique_ptr<IdentityPairs> identity_;
  PairListRef pairs_{};   // of the map itself, not of its transpose
  DeviceMap pairs_map_{};
  bool pairs_asked_ = false;
  std::vector<std::unique_ptr<TilesOfPairs>> pair_tiles_;
  std::array<Buffer<std::int32_t>, 2> pair_index_;   // of the map itself, of its transpose
  std::vector<std::int64_t> pair_begin_;             // on the host; empty until asked for
};

}   // namespace pumice::cuda
