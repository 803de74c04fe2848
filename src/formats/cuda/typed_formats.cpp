#include "formats/cuda/typed_formats.hpp"

#include <algorithm>

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "coords/cuda/upload.hpp"

namespace pumice::cuda {

TypedFormats::TypedFormats(std::span<const std::int64_t> begin, jit::DeviceRunner runner)
    : stream_(runner.stream()),
      begin_on_host_(begin.begin(), begin.end()),
      begin_(runner.make<std::int64_t>(static_cast<std::int64_t>(begin.size()))),
      pairs_(runner, {nullptr, begin.back()}) {
  upload(runner, reinterpret_cast<std::uint32_t*>(begin_.data()),
         {reinterpret_cast<const std::uint32_t*>(begin.data()), 2 * begin.size()});
}

const TileMapRef& TypedFormats::tiles(bool is_transposed, const TileCut& cut, OffsetOrder) {
  PUMICE_ENSURES(cut.splits == 1, cut.splits, " splits of one product a row");
  return pair_tiles(is_transposed, {.tile_rows = cut.tile_rows});
}

PairListRef TypedFormats::pairs(bool) {
  PairListRef pairs = pairs_.ref();
  pairs.offset_begin = begin_.data();
  pairs.offsets = static_cast<std::int32_t>(begin_on_host_.size()) - 1;
  return pairs;
}

/// A row's number is its pair's, so that rows of their own are the same rows.
const TileMapRef& TypedFormats::pair_tiles(bool is_transposed, const PairTileOptions& options) {
  const std::uint64_t recording = capture_of(stream_);
  const auto find = [&]() -> const TileMapRef* {
    const auto made = std::ranges::find_if(tiles_, [&](const Tiles& tiles) {
      return tiles.options.tile_rows == options.tile_rows &&
             (tiles.recording == 0 || tiles.recording == recording);
    });
    return made == tiles_.end() ? nullptr : &made->tiles->ref();
  };
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
  }
  // Without the lock: an allocator may wait for one that somebody holds who waits for this.
  jit::DeviceRunner runner(stream_, default_allocator(stream_.device));
  auto made =
      std::make_unique<PairTiles>(runner, pairs(is_transposed), PairRows{rows(), rows()}, options);
  const std::scoped_lock lock(mutex_);
  if (find() == nullptr) tiles_.push_back({options, recording, std::move(made)});
  return *find();
}

const std::int32_t* TypedFormats::pair_index(bool) {
  PUMICE_ENSURES(false, "an index of pairs, of rows that have one each");
}

RowCountRef TypedFormats::output_rows(bool) const {
  return rows();
}

}   // namespace pumice::cuda
