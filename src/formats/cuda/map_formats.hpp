// What convolutions on a device run on, made from a kernel map when first asked for and kept with
// it: tiles of outputs, in either direction, and the pairs that gradients of weights sum over. Each
// direction is searched once, where tiles are asked for first:
//
//   tiles of a height ──► tiles of another height     which outputs have which offsets, and their
//                    └──► pairs of the same direction   order, are kept (OrderedMap)
//   tiles of a centred map ──► those of its transpose  the same but for the numbers of offsets
//   an offset that goes nowhere ──► pairs              every row with itself
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <pumice/maps/kernel_map.hpp>

#include "formats/cuda/cut_maps.hpp"
#include "formats/cuda/cut_notes.hpp"
#include "formats/cuda/device_formats.hpp"
#include "formats/cuda/identity_pairs.hpp"

namespace pumice::cuda {

/// Any thread may ask; work is enqueued on the stream of the map's sets. What is missing is made
/// without the mutex, since an allocator may wait for a lock that somebody holds who waits for it
/// (Python's); what two threads made at once one of them gives back.
///
/// What is made while a graph is recorded is there once that graph has run, and not before: it is
/// kept apart, for those who ask in the same recording. They find what was made before it, too.
class MapFormats final : public DeviceFormats, public KeptWithMap {
 public:
  /// Those that are kept with a map on a device.
  static MapFormats& of(const KernelMap& map);
  /// `map` outlives them.
  explicit MapFormats(const KernelMap& map) : map_(map) {}

  const TileMapRef& tiles(bool is_transposed, const TileCut& cut, OffsetOrder order) override;
  PairListRef pairs(bool is_transposed) override;
  const TileMapRef& pair_tiles(bool is_transposed, const PairTileOptions& options) override;
  const std::int32_t* pair_index(bool is_transposed) override;
  RowCountRef output_rows(bool is_transposed) const override;
  const std::vector<std::int64_t>& wait_for_pair_counts() override;

  /// Those to ask, and to keep something in, for work on `stream`: others while it is recorded.
  MapFormats& here(StreamView stream);

  /// For those who build the tiles of many maps at once. What `tiles` was asked for so far:
  /// (Tiles of a centred map count as those of the map itself, whoever asked.)
  struct Asked {
    TilesWanted wanted;
    RowCountRef entries;
  };
  std::vector<Asked> asked();
  /// How many pairs there are, where `pairs` was asked for a list that takes room of its own.
  std::optional<RowCountRef> asked_pairs();
  /// How they are built.
  CutRequest request(const TilesWanted& wanted, std::int64_t entry_capacity = 0);
  /// Adds the list of pairs to what `requests` of this map lead to, or one more request.
  void list_pairs(std::vector<CutRequest>& requests, std::int64_t pair_capacity);

  /// What `tiles` with such arguments leads to, where the order of entries does not matter.
  TilesWanted tiles_wanted(bool is_transposed, const TileCut& cut) const;

  /// For those who cut several maps at once: what is wanted of this one.
  struct Wanted {
    std::vector<TilesWanted> tiles;
    bool pairs = false;

    void add(const TilesWanted& more) {
      if (std::ranges::find(tiles, more) == tiles.end()) tiles.push_back(more);
    }
  };
  /// Requests for what of it is not there.
  std::vector<CutRequest> missing(const Wanted& wanted);
  /// Takes what such a request, or one of `request`, led to.
  void keep(const CutRequest& request, CutMap made);
  /// Where the window is on the device already; else it is copied there when needed.
  void keep_window(std::shared_ptr<const DeviceWindow> window);
  /// From here on `notes` are told what is asked for, but for what is recorded into graphs.
  void note_in(std::shared_ptr<CutNotes> notes);

 private:
  struct Tiles {
    TilesWanted wanted;
    CutMap map;
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
  MapFormats(MapFormats& older, std::uint64_t recording, std::shared_ptr<const DeviceWindow> window)
      : map_(older.map_), older_(&older), recording_(recording), window_(std::move(window)) {}

  /// Where it is not there yet it is copied to the device, without the mutex.
  const DeviceWindow* window();
  CutRequest request_through(const DeviceWindow* window, const TilesWanted& wanted,
                             std::int64_t entry_capacity = 0) const;
  bool is_transposed(const CutRequest& request) const;
  // With the mutex held.
  CutRequest pair_request(const DeviceWindow* window) const;
  void add_pairs(std::vector<CutRequest>& requests, const DeviceWindow* window,
                 const PairOptions& options) const;
  Tiles* made_tiles(const TilesWanted& wanted) const;
  // Without it: here, or before this recording.
  bool has_tiles(const TilesWanted& wanted);
  bool has_pairs();

  const KernelMap& map_;
  MapFormats* const older_ = nullptr;   // null but for those of a recording
  const std::uint64_t recording_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MapFormats>> recorded_;   // as long as graphs may run
  std::shared_ptr<const DeviceWindow> window_;
  std::vector<std::unique_ptr<Tiles>> tiles_;            // a handful
  std::array<std::shared_ptr<OrderedMap>, 2> ordered_;   // of the map itself, of its transpose
  std::unique_ptr<IdentityPairs> identity_;
  PairListRef pairs_{};   // of the map itself, not of its transpose
  CutMap pairs_cut_{};
  std::shared_ptr<CutNotes> notes_;
  bool asked_for_pairs_ = false;
  std::vector<std::unique_ptr<TilesOfPairs>> pair_tiles_;
  std::array<Buffer<std::int32_t>, 2> pair_index_;   // of the map itself, of its transpose
  std::vector<std::int64_t> pair_begin_;             // on the host; empty until asked for
};

}   // namespace pumice::cuda
