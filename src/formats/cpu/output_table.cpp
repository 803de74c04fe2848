// Filling the output-stationary table, and the order of its rows.
#include <pumice/formats/output_table.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/radix_sort.hpp>

namespace pumice {
namespace {

// Outputs a task fills at once: 27 offsets of 1024 rows are 108 KiB of table, a part of an L2.
constexpr std::int64_t kFillRows = 1024;
constexpr std::int64_t kGrain = 1 << 14;

std::int64_t tiles_of(std::int64_t rows, std::int64_t tile_rows) {
  return (rows + tile_rows - 1) / tile_rows;
}

/// The bit of every offset in [begin, end): the rarest highest, so that outputs with the same rare
/// offsets stand together and most tiles skip those. On 3³ maps of LiDAR scans this order wastes
/// the fewest multiplies of those tried.
std::vector<std::int64_t> bit_of_offset(const RelationView& relation, std::int64_t begin,
                                        std::int64_t end) {
  std::vector<std::int64_t> by_count(static_cast<std::size_t>(end - begin));
  std::iota(by_count.begin(), by_count.end(), begin);
  std::stable_sort(by_count.begin(), by_count.end(), [&](std::int64_t a, std::int64_t b) {
    return relation.pairs_of(a) > relation.pairs_of(b);
  });
  std::vector<std::int64_t> bit(by_count.size());
  for (std::size_t i = 0; i < by_count.size(); ++i) {
    bit[static_cast<std::size_t>(by_count[i] - begin)] = static_cast<std::int64_t>(i);
  }
  return bit;
}

/// Ranks sorted by descending mask over the offsets [begin, end); equal masks keep rank order,
/// which is the order of memory. `pieces` are its pairs in tiles of ranks.
std::vector<std::int32_t> ranks_by_mask(const RelationView& relation,
                                        const RelationTilesView& pieces, std::int64_t begin,
                                        std::int64_t end) {
  const std::vector<std::int64_t> bit = bit_of_offset(relation, begin, end);
  const std::int64_t words = (end - begin + 63) / 64;
  Buffer<std::uint64_t> mask(relation.out_rows * words);   // complemented: ascending is descending
  parallel_for(pieces.tiles, 1, [&](std::int64_t tile, std::int64_t) {
    const std::int64_t first = tile * pieces.tile_rows;
    const std::int64_t rows = std::min(pieces.tile_rows, relation.out_rows - first);
    std::fill_n(mask.data() + first * words, rows * words, ~std::uint64_t{0});
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t at = bit[static_cast<std::size_t>(k - begin)];
      const std::int64_t* const range = pieces.begin + tile * pieces.offsets + k;
      for (std::int64_t pair = range[0]; pair < range[1]; ++pair) {
        mask[(first + pieces.local_out[pair]) * words + at / 64] ^= std::uint64_t{1} << (at % 64);
      }
    }
  });

  std::vector<std::int32_t> ranks(static_cast<std::size_t>(relation.out_rows));
  std::iota(ranks.begin(), ranks.end(), 0);
  Buffer<std::uint64_t> keys(relation.out_rows);
  for (std::int64_t word = 0; word < words; ++word) {   // least significant first, each stable
    const std::int64_t bits = std::min<std::int64_t>(64, end - begin - word * 64);
    const std::uint64_t used = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    parallel_for(relation.out_rows, kGrain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) {
        keys[i] = mask[ranks[static_cast<std::size_t>(i)] * words + word] & used;
      }
    });
    radix_sort_pairs(keys.span(), ranks, static_cast<int>(bits));
  }
  return ranks;
}

}   // namespace

OutputTable::OutputTable(const RelationView& relation, bool sort_by_mask, int splits)
    : offsets_(relation.offsets),
      out_rows_(relation.out_rows),
      pairs_(relation.pairs()),
      splits_(splits) {
  PUMICE_EXPECTS(splits >= 1 && splits <= std::max<std::int64_t>(offsets_, 1), "splits = ", splits,
                 ": a relation of ", offsets_, " offsets can be cut into 1 to ", offsets_,
                 " parts");
  PUMICE_EXPECTS(relation.unique_rows,
                 "OutputTable: rows of this relation repeat within an offset, and a column holds "
                 "one input; cut RelationTiles instead");
  table_ = Buffer<std::int32_t>(out_rows_ * offsets_);
  order_ = Buffer<std::int32_t>(out_rows_ * splits_);
  const RelationTiles tiles(relation, kFillRows);
  const RelationTilesView pieces = tiles.view();

  parallel_for(table_.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::fill(table_.data() + begin, table_.data() + end, -1);
  });
  Buffer<std::int32_t> position(sort_by_mask ? out_rows_ : 0);   // of a rank
  for (int split = 0; split < splits_; ++split) {
    std::vector<std::int32_t> ranks;
    if (sort_by_mask) {
      ranks = ranks_by_mask(relation, pieces, first_offset(split), first_offset(split + 1));
    }
    parallel_for(out_rows_, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto rank =
            sort_by_mask ? ranks[static_cast<std::size_t>(i)] : static_cast<std::int32_t>(i);
        if (sort_by_mask) position[rank] = static_cast<std::int32_t>(i);
        order_[split * out_rows_ + i] = pieces.out_order == nullptr ? rank : pieces.out_order[rank];
      }
    });
    parallel_for(pieces.tiles, 1, [&](std::int64_t tile, std::int64_t) {
      for (std::int64_t k = first_offset(split); k < first_offset(split + 1); ++k) {
        const std::int64_t* const range = pieces.begin + tile * offsets_ + k;
        for (std::int64_t pair = range[0]; pair < range[1]; ++pair) {
          const std::int64_t rank = tile * kFillRows + pieces.local_out[pair];
          const std::int64_t row = sort_by_mask ? position[rank] : rank;
          table_[row * offsets_ + k] = pieces.in[pair];
        }
      }
    });
  }
}

OutputTable::OutputTable(const KernelMapView& map, bool sort_by_mask, int splits)
    : OutputTable((check_lists(map, "OutputTable"), relation_of(map)), sort_by_mask, splits) {}

bool OutputTable::any_in_tile(std::int64_t tile, std::int64_t tile_rows, std::int64_t k) const {
  const std::int64_t end = std::min((tile + 1) * tile_rows, out_rows_);
  for (std::int64_t row = tile * tile_rows; row < end; ++row) {
    if (table_[row * offsets_ + k] >= 0) return true;
  }
  return false;
}

double OutputTable::density(std::int64_t tile_rows) const {
  std::int64_t entries = 0;
  for (std::int64_t tile = 0; tile < tiles_of(out_rows_, tile_rows); ++tile) {
    const std::int64_t rows = std::min(tile_rows, out_rows_ - tile * tile_rows);
    for (std::int64_t k = 0; k < offsets_; ++k) {
      if (any_in_tile(tile, tile_rows, k)) entries += rows;
    }
  }
  return entries == 0 ? 1.0 : static_cast<double>(pairs_) / static_cast<double>(entries);
}

RelationTiles OutputTable::tiles(int split, std::int64_t tile_rows) const {
  PUMICE_EXPECTS(split >= 0 && split < splits_, "split = ", split, " of a table with ", splits_);
  RelationTiles result;
  result.tile_rows_ = tile_rows;
  result.tiles_ = tiles_of(out_rows_, tile_rows);
  result.offsets_ = offsets_;
  result.out_rows_ = out_rows_;
  result.begin_ = Buffer<std::int64_t>(result.tiles_ * offsets_ + 1);
  std::int64_t* const begin = result.begin_.data();
  begin[0] = 0;
  parallel_for(result.tiles_, 1, [&](std::int64_t tile, std::int64_t) {
    const std::int64_t rows = std::min(tile_rows, out_rows_ - tile * tile_rows);
    for (std::int64_t k = 0; k < offsets_; ++k) {
      const bool mine = k >= first_offset(split) && k < first_offset(split + 1);
      begin[tile * offsets_ + k + 1] = mine && any_in_tile(tile, tile_rows, k) ? rows : 0;
    }
  });
  std::inclusive_scan(begin, begin + result.tiles_ * offsets_ + 1, begin);

  const std::int64_t entries = begin[result.tiles_ * offsets_];
  result.in_ = Buffer<std::int32_t>(entries);
  result.local_out_ = Buffer<std::int32_t>(entries);
  parallel_for(result.tiles_, 1, [&](std::int64_t tile, std::int64_t) {
    for (std::int64_t k = first_offset(split); k < first_offset(split + 1); ++k) {
      const std::int64_t to = begin[tile * offsets_ + k];
      for (std::int64_t i = 0; i < begin[tile * offsets_ + k + 1] - to; ++i) {
        result.in_[to + i] = table_[(tile * tile_rows + i) * offsets_ + k];
        result.local_out_[to + i] = static_cast<std::int32_t>(i);
      }
    }
  });
  result.out_order_ = Buffer<std::int32_t>(out_rows_);
  std::copy_n(order(split), out_rows_, result.out_order_.data());
  return result;
}

}   // namespace pumice
