// Memory and launches of tiles of pairs.
#include "formats/cuda/pair_tiles.hpp"

#include <limits>

#include <pumice/formats/pair_tile_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "formats/cuda/sources.hpp"

namespace pumice::cuda {

PairTiles::PairTiles(jit::KernelRunner& runner, const PairListRef& pairs, const PairRows& rows,
                     const PairTileOptions& options) {
  PUMICE_ENSURES(options.tile_rows > 0 && options.tile_rows % kBlockRows == 0 &&
                     options.tile_rows <= kBlockRows * kMaxTileBlocks,
                 "tiles of ", options.tile_rows, " pairs");
  PUMICE_EXPECTS(pairs.offsets <= kMostTileOffsets, "a kernel of ", pairs.offsets,
                 " offsets; on a device the most is ", kMostTileOffsets,
                 ", so take a smaller kernel");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(pairs.pairs.capacity <= kMost, "a kernel map with room for ", pairs.pairs.capacity,
                 " pairs; fetch_on_demand takes at most ", kMost,
                 ", so choose implicit_gemm or a smaller batch");
  // Every offset has at most one tile that is not full.
  const std::int64_t tiles = pairs.pairs.capacity / options.tile_rows + pairs.offsets;
  tile_begin_ = runner.make<std::int64_t>(pairs.offsets + 2);
  tile_order_ = runner.make<TileRun>(tiles);
  entry_ = runner.make<TileEntry>(tiles);
  in_row_ = runner.make<std::int32_t>(tiles * options.tile_rows);
  out_row_ = runner.make<std::int32_t>(tiles * options.tile_rows);
  const PairTilesArguments arguments{.pairs = pairs,
                                     .tile_rows = options.tile_rows,
                                     .own_rows = options.own_rows,
                                     .tile_begin = tile_begin_.data(),
                                     .tile_order = tile_order_.data(),
                                     .entry = entry_.data(),
                                     .in_row = in_row_.data(),
                                     .out_row = out_row_.data(),
                                     .tile_count = tile_begin_.data() + pairs.offsets + 1};
  runner.run(formats_kernel("plan_pair_tiles"), {.blocks = 1, .threads = kPairPlanThreads},
             arguments);
  runner.run(formats_kernel("fill_pair_tiles"), {.blocks = tiles, .threads = kPairTileThreads},
             arguments);
  ref_ = {.tile_order = arguments.tile_order,
          .entry = arguments.entry,
          .in_row = arguments.in_row,
          .out_row = arguments.out_row,
          .tiles = {arguments.tile_count, tiles},
          .in_rows = rows.in,
          .out_rows = rows.out,
          .tile_rows = options.tile_rows,
          .offsets = pairs.offsets};
}

Buffer<std::int32_t> index_pairs(jit::KernelRunner& runner, const PairListRef& pairs,
                                 std::int64_t out_rows) {
  auto pair_of = runner.make<std::int32_t>(out_rows * pairs.offsets);
  if (pair_of.size() == 0) return pair_of;
  fill_bytes_async(pair_of.data(), std::byte{0xff}, pair_of.bytes(), runner.stream());   // -1
  runner.run(formats_kernel("index_pairs"),
             {.blocks = (pairs.pairs.capacity + kPairTileThreads - 1) / kPairTileThreads,
              .threads = kPairTileThreads},
             PairIndexArguments{.pairs = pairs, .pair_of = pair_of.data()});
  return pair_of;
}

}   // namespace pumice::cuda
