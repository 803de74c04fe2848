// Cutting a relation into tiles of outputs. One sorted by output rank is only sliced, and so is
// the transposed view of a centred submanifold map, whose offset k holds the pairs of offset K-1-k
// the other way round. Any other one takes a counting pass by tile and a small sort within each
// tile: 13 ns a pair instead of 1.3.
#include <pumice/formats/relation_tiles.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "formats/cpu/ranks.hpp"

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

/// What both ways of cutting share: the relation, the ranks of its outputs, and where to write.
struct Cut {
  const RelationView& relation;
  bool mirrored;   // read offset K-1-k, inputs as outputs, for offset k
  const RankOfRow& rank;
  std::int64_t tile_rows;
  std::int64_t tiles;
  std::int64_t* begin;       // [tiles · offsets + 1]
  std::int32_t* in;          // [pairs]
  std::int32_t* local_out;   // [pairs]
  std::int64_t* entry;       // [pairs] or null

  std::int64_t first_pair(std::int64_t offset) const { return bound(offset, 0); }
  std::int64_t end_pair(std::int64_t offset) const { return bound(offset, 1); }
  const std::int32_t* inputs() const { return mirrored ? relation.out.data() : relation.in.data(); }
  const std::int32_t* outputs() const {
    return mirrored ? relation.in.data() : relation.out.data();
  }
  std::int64_t rank_of_pair(std::int64_t pair) const { return rank(outputs()[pair]); }
  std::int64_t bound(std::int64_t offset, std::int64_t side) const {
    const std::int64_t k = mirrored ? relation.offsets - 1 - offset : offset;
    return relation.offset_begin[static_cast<std::size_t>(k + side)];
  }
  /// begin[] from the number of pairs in each (offset, tile), offset-major as it was counted.
  void scan(const Buffer<std::int64_t>& count) const {
    std::int64_t running = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      for (std::int64_t k = 0; k < relation.offsets; ++k) {
        begin[tile * relation.offsets + k] = running;
        running += count[k * tiles + tile];
      }
    }
    begin[tiles * relation.offsets] = running;
    PUMICE_ENSURES(running == relation.pairs(), running, " pairs in tiles, ", relation.pairs(),
                   " in the relation");
  }
};

/// Output ranks ascend within an offset, so a tile's pairs are a slice found by bisection.
void cut_sorted(const Cut& cut) {
  const std::int64_t offsets = cut.relation.offsets;
  Buffer<std::int64_t> first(offsets * cut.tiles);   // [offset, tile]: first pair, in the map
  Buffer<std::int64_t> count(offsets * cut.tiles);
  parallel_for(offsets, 1, [&](std::int64_t k, std::int64_t) {
    const std::int64_t end = cut.end_pair(k);
    std::int64_t pair = cut.first_pair(k);
    for (std::int64_t tile = 0; tile < cut.tiles; ++tile) {
      const std::int64_t last_rank = (tile + 1) * cut.tile_rows;
      // A tile holds at most tile_rows pairs of one offset where rows are unique: bisect among
      // those.
      std::int64_t low = pair;
      std::int64_t high = cut.relation.unique_rows ? std::min(end, pair + cut.tile_rows) : end;
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
        if (cut.entry != nullptr) std::iota(cut.entry + to, cut.entry + to + size, pair);
        for (std::int64_t i = 0; i < size; ++i) {
          cut.local_out[to + i] =
              static_cast<std::int32_t>(cut.rank_of_pair(pair + i) - tile * cut.tile_rows);
        }
      }
    }
  });
}

/// The pairs of one (tile, offset).
struct Piece {
  std::int32_t* in;
  std::int32_t* local_out;
  std::int64_t* entry;   // or null
  std::int64_t size;
};

/// Puts pairs with distinct `local_out` in ascending order: each into its own slot, then the set
/// slots read off a bitmap. `place_of` has room for a tile's rows, `present` for its bits, all 0.
void sort_unique(const Piece& piece, std::vector<std::int32_t>& place_of,
                 std::vector<std::uint64_t>& present) {
  for (std::int64_t i = 0; i < piece.size; ++i) {
    const auto row = static_cast<std::size_t>(piece.local_out[i]);
    place_of[row] = piece.in[i];
    present[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  std::int64_t to = 0;
  for (std::size_t word = 0; word < present.size(); ++word) {
    for (std::uint64_t bits = present[word]; bits != 0; bits &= bits - 1) {
      const std::size_t row = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      piece.in[to] = place_of[row];
      piece.local_out[to] = static_cast<std::int32_t>(row);
      ++to;
    }
    present[word] = 0;
  }
  PUMICE_ENSURES(to == piece.size, "an output row repeats within an offset: ", to, " of ",
                 piece.size);
}

/// The same where rows repeat or pairs carry their numbers; equal rows keep their order.
void sort_stable(const Piece& piece) {
  const auto size = static_cast<std::size_t>(piece.size);
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return piece.local_out[a] < piece.local_out[b];
  });
  const auto permute = [&](auto* values) {
    const std::vector before(values, values + size);
    for (std::size_t i = 0; i < size; ++i)
      values[i] = before[order[i]];
  };
  permute(piece.in);
  permute(piece.local_out);
  if (piece.entry != nullptr) permute(piece.entry);
}

/// Any order of pairs: count them by tile, place them, sort each (tile, offset).
void cut_unsorted(const Cut& cut) {
  const std::int64_t offsets = cut.relation.offsets;
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
      if (cut.entry != nullptr) cut.entry[to] = pair;
    }
  });
  parallel_for(cut.tiles, kTilesAtOnce, [&](std::int64_t tile, std::int64_t tile_end) {
    const auto rows = static_cast<std::size_t>(std::min(cut.tile_rows, cut.relation.out_rows));
    std::vector<std::int32_t> input_of(rows);
    std::vector<std::uint64_t> present((rows + 63) / 64);
    for (; tile < tile_end; ++tile) {
      for (std::int64_t k = 0; k < offsets; ++k) {
        const std::int64_t from = cut.begin[tile * offsets + k];
        const Piece piece{cut.in + from, cut.local_out + from,
                          cut.entry == nullptr ? nullptr : cut.entry + from,
                          cut.begin[tile * offsets + k + 1] - from};
        if (std::is_sorted(piece.local_out, piece.local_out + piece.size)) continue;
        if (cut.relation.unique_rows && piece.entry == nullptr)
          sort_unique(piece, input_of, present);
        else
          sort_stable(piece);
      }
    }
  });
}

}   // namespace

RelationTiles::RelationTiles(const KernelMapView& map, std::int64_t tile_rows, EntryNumbers numbers)
    : RelationTiles((check_lists(map, "RelationTiles"), relation_of(map)), tile_rows, numbers) {}

RelationTiles::RelationTiles(const RelationView& relation, std::int64_t tile_rows,
                             EntryNumbers numbers)
    : tile_rows_(tile_rows),
      offsets_(relation.offsets),
      out_rows_(relation.out_rows),
      unique_rows_(relation.unique_rows) {
  PUMICE_EXPECTS(tile_rows >= 1 && tile_rows <= std::numeric_limits<std::int32_t>::max(),
                 "tile_rows = ", tile_rows,
                 ": a tile holds at least one output and fewer than 2^31");
  tiles_ = (out_rows_ + tile_rows_ - 1) / tile_rows_;
  begin_ = Buffer<std::int64_t>(tiles_ * offsets_ + 1);
  in_ = Buffer<std::int32_t>(relation.pairs());
  local_out_ = Buffer<std::int32_t>(relation.pairs());
  if (numbers == EntryNumbers::kept) entry_ = Buffer<std::int64_t>(relation.pairs());
  if (!relation.out_order.empty()) {
    out_order_ = Buffer<std::int32_t>(out_rows_);
    std::copy(relation.out_order.begin(), relation.out_order.end(), out_order_.data());
  }
  const RankOfRow rank(relation.out_order);
  const bool mirrored =
      !relation.sorted_by_out && relation.sorted_by_in && relation.has_identity_offset;
  const Cut cut{relation,
                mirrored,
                rank,
                tile_rows_,
                tiles_,
                begin_.data(),
                in_.data(),
                local_out_.data(),
                numbers == EntryNumbers::kept ? entry_.data() : nullptr};
  if (relation.sorted_by_out || mirrored) {
    cut_sorted(cut);
  } else {
    cut_unsorted(cut);
  }
}

RelationTilesView RelationTiles::view() const& {
  return {tile_rows_,    tiles_,      offsets_,          out_rows_,
          begin_.data(), in_.data(),  local_out_.data(), out_order_.data(),
          entry_.data(), unique_rows_};
}

}   // namespace pumice
