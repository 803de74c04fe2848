// Cutting a kernel map into tiles of outputs. A map sorted by output rank is only sliced, and so is
// the transposed view of a centred submanifold map, whose offset k holds the pairs of offset K-1-k
// the other way round. Any other one takes a counting pass by tile and a small sort within each
// tile: 13 ns a pair instead of 1.3.
#include <pumice/formats/relation_tiles.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "formats/ranks.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kTilesAtOnce = 8;   // of one task: a few thousand pairs on real scans

/// rank / tile_rows by a multiplication. Exact: a rank is below 2^31, so the rounding of the
/// inverse adds less than 2^31 / 2^63 to the quotient, and the fraction is at most 1 - 2^-31.
class TileOf {
 public:
  explicit TileOf(std::int64_t tile_rows)
      : inverse_((std::uint64_t{1} << 63) / static_cast<std::uint64_t>(tile_rows) + 1) {}
  std::int64_t operator()(std::int64_t rank) const {
    __extension__ using uint128 = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<uint128>(rank) * inverse_) >> 63);
  }

 private:
  std::uint64_t inverse_;
};

/// What both ways of cutting share: the map, the ranks of its outputs, and where to write.
struct Cut {
  const KernelMapView& map;
  bool mirrored;   // read offset K-1-k, inputs as outputs, for offset k
  const RankOfRow& rank;
  std::int64_t tile_rows;
  std::int64_t tiles;
  std::int64_t* begin;       // [tiles · offsets + 1]
  std::int32_t* in;          // [pairs]
  std::int32_t* local_out;   // [pairs]

  std::int64_t first_pair(std::int64_t offset) const { return bound(offset, 0); }
  std::int64_t end_pair(std::int64_t offset) const { return bound(offset, 1); }
  const std::int32_t* inputs() const { return mirrored ? map.out.data() : map.in.data(); }
  const std::int32_t* outputs() const { return mirrored ? map.in.data() : map.out.data(); }
  std::int64_t rank_of_pair(std::int64_t pair) const { return rank(outputs()[pair]); }
  std::int64_t bound(std::int64_t offset, std::int64_t side) const {
    const std::int64_t k = mirrored ? map.offsets - 1 - offset : offset;
    return map.offset_begin[static_cast<std::size_t>(k + side)];
  }
  /// begin[] from the number of pairs in each (offset, tile), offset-major as it was counted.
  void scan(const Buffer<std::int64_t>& count) const {
    std::int64_t running = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      for (std::int64_t k = 0; k < map.offsets; ++k) {
        begin[tile * map.offsets + k] = running;
        running += count[k * tiles + tile];
      }
    }
    begin[tiles * map.offsets] = running;
    PUMICE_ENSURES(running == map.pairs(), running, " pairs in tiles, ", map.pairs(),
                   " in the map");
  }
};

/// Output ranks ascend within an offset, so a tile's pairs are a slice found by bisection.
void cut_sorted(const Cut& cut) {
  const std::int64_t offsets = cut.map.offsets;
  Buffer<std::int64_t> first(offsets * cut.tiles);   // [offset, tile]: first pair, in the map
  Buffer<std::int64_t> count(offsets * cut.tiles);
  parallel_for(offsets, 1, [&](std::int64_t k, std::int64_t) {
    const std::int64_t end = cut.end_pair(k);
    std::int64_t pair = cut.first_pair(k);
    for (std::int64_t tile = 0; tile < cut.tiles; ++tile) {
      const std::int64_t last_rank = (tile + 1) * cut.tile_rows;
      // A tile holds at most tile_rows pairs of one offset: bisect among those.
      std::int64_t low = pair;
      std::int64_t high = std::min(end, pair + cut.tile_rows);
      while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (cut.rank_of_pair(middle) < last_rank)
          low = middle + 1;
        else
          high = middle;
      }
      first[k * cut.tiles + tile] = pair;
      count[k * cut.tiles + tile] = low - pair;
      pair = low;
    }
  });
  cut.scan(count);
  parallel_for(cut.tiles, kTilesAtOnce, [&](std::int64_t tile, std::int64_t tile_end) {
    for (; tile < tile_end; ++tile) {
      for (std::int64_t k = 0; k < offsets; ++k) {
        const std::int64_t pair = first[k * cut.tiles + tile];
        const std::int64_t size = count[k * cut.tiles + tile];
        const std::int64_t to = cut.begin[tile * offsets + k];
        std::copy_n(cut.inputs() + pair, size, cut.in + to);
        for (std::int64_t i = 0; i < size; ++i) {
          cut.local_out[to + i] =
              static_cast<std::int32_t>(cut.rank_of_pair(pair + i) - tile * cut.tile_rows);
        }
      }
    }
  });
}

/// Puts `size` pairs with distinct `local_out` in ascending order: each into its own slot, then the
/// set slots read off a bitmap. `input_of` has room for a tile's rows, `present` for its bits, all
/// 0.
void sort_by_local_out(std::int32_t* in, std::int32_t* local_out, std::int64_t size,
                       std::vector<std::int32_t>& input_of, std::vector<std::uint64_t>& present) {
  if (std::is_sorted(local_out, local_out + size)) return;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto row = static_cast<std::size_t>(local_out[i]);
    input_of[row] = in[i];
    present[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  std::int64_t to = 0;
  for (std::size_t word = 0; word < present.size(); ++word) {
    for (std::uint64_t bits = present[word]; bits != 0; bits &= bits - 1) {
      const std::size_t row = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      in[to] = input_of[row];
      local_out[to] = static_cast<std::int32_t>(row);
      ++to;
    }
    present[word] = 0;
  }
  PUMICE_ENSURES(to == size, "an output row repeats within an offset: ", to, " of ", size);
}

/// Any order of pairs: count them by tile, place them, sort each (tile, offset).
void cut_unsorted(const Cut& cut) {
  const std::int64_t offsets = cut.map.offsets;
  const TileOf tile_of(cut.tile_rows);
  Buffer<std::int64_t> count(offsets * cut.tiles);   // [offset, tile]
  parallel_for(offsets, 1, [&](std::int64_t k, std::int64_t) {
    std::int64_t* const of_tile = count.data() + k * cut.tiles;
    std::fill_n(of_tile, cut.tiles, 0);
    for (std::int64_t pair = cut.first_pair(k); pair < cut.end_pair(k); ++pair) {
      ++of_tile[tile_of(cut.rank_of_pair(pair))];
    }
  });
  cut.scan(count);
  parallel_for(offsets, 1, [&](std::int64_t k, std::int64_t) {
    std::int64_t* const left = count.data() + k * cut.tiles;   // counts down to 0 again
    for (std::int64_t pair = cut.end_pair(k) - 1; pair >= cut.first_pair(k); --pair) {
      const std::int64_t rank = cut.rank_of_pair(pair);
      const std::int64_t tile = tile_of(rank);
      const std::int64_t to = cut.begin[tile * offsets + k] + --left[tile];
      cut.in[to] = cut.inputs()[pair];
      cut.local_out[to] = static_cast<std::int32_t>(rank - tile * cut.tile_rows);
    }
  });
  parallel_for(cut.tiles, kTilesAtOnce, [&](std::int64_t tile, std::int64_t tile_end) {
    const auto rows = static_cast<std::size_t>(std::min(cut.tile_rows, cut.map.out_rows));
    std::vector<std::int32_t> input_of(rows);
    std::vector<std::uint64_t> present((rows + 63) / 64);
    for (; tile < tile_end; ++tile) {
      for (std::int64_t k = 0; k < offsets; ++k) {
        const std::int64_t from = cut.begin[tile * offsets + k];
        const std::int64_t size = cut.begin[tile * offsets + k + 1] - from;
        sort_by_local_out(cut.in + from, cut.local_out + from, size, input_of, present);
      }
    }
  });
}

}   // namespace

RelationTiles::RelationTiles(const KernelMapView& map, std::int64_t tile_rows)
    : tile_rows_(tile_rows), offsets_(map.offsets), out_rows_(map.out_rows) {
  PUMICE_EXPECTS(tile_rows >= 1 && tile_rows <= std::numeric_limits<std::int32_t>::max(),
                 "tile_rows = ", tile_rows,
                 ": a tile holds at least one output and fewer than 2^31");
  check_lists(map, "RelationTiles");
  tiles_ = (out_rows_ + tile_rows_ - 1) / tile_rows_;
  begin_ = Buffer<std::int64_t>(tiles_ * offsets_ + 1);
  in_ = Buffer<std::int32_t>(map.pairs());
  local_out_ = Buffer<std::int32_t>(map.pairs());
  if (!map.out_order.empty()) {
    out_order_ = Buffer<std::int32_t>(out_rows_);
    std::copy(map.out_order.begin(), map.out_order.end(), out_order_.data());
  }
  const RankOfRow rank(map.out_order);
  const bool mirrored = !map.sorted_by_out && map.sorted_by_in && map.has_identity_offset;
  const Cut cut{map,    mirrored,      rank,       tile_rows_,
                tiles_, begin_.data(), in_.data(), local_out_.data()};
  if (map.sorted_by_out || mirrored) {
    cut_sorted(cut);
  } else {
    cut_unsorted(cut);
  }
}

RelationTilesView RelationTiles::view() const {
  return {tile_rows_,    tiles_,     offsets_,          out_rows_,
          begin_.data(), in_.data(), local_out_.data(), out_order_.data()};
}

}   // namespace pumice
