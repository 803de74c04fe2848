// Pair lists made in two passes: count per chunk and offset, then fill at exact positions. The cut
// into chunks depends on the problem alone, so any number of threads makes the same lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/maps/kernel_map.hpp>

namespace pumice {

/// Where a chunk writes: the next pair of offset k goes to `next[k]`.
struct PairWriter {
  std::int64_t* next;
  std::int32_t* in;
  std::int32_t* out;
  void write(std::size_t k, std::int32_t in_row, std::int32_t out_row) const {
    const std::int64_t at = next[k]++;
    in[at] = in_row;
    out[at] = out_row;
  }
};

/// Chunks of `items` that are at least `least` long and so few that the counts of all chunks stay
/// within 2^22 numbers however many offsets there are.
inline std::int64_t pair_grain(std::int64_t items, std::size_t offsets, std::int64_t least) {
  const auto all_counts = items * static_cast<std::int64_t>(offsets);
  return std::max(least, (all_counts >> 22) + 1);
}

/// count(begin, end, counts) adds the pairs of items [begin, end) per offset; fill(begin, end,
/// writer) writes them, within an offset in the order of their output ranks.
template <class Count, class Fill>
KernelPairs make_pair_lists(std::size_t offsets, std::int64_t items, std::int64_t grain,
                            Count&& count, Fill&& fill) {
  const auto chunks = static_cast<std::size_t>((items + grain - 1) / grain);
  std::vector<std::int64_t> next(chunks * offsets, 0);
  const auto of_chunk = [&](std::int64_t begin) {
    return next.data() + static_cast<std::size_t>(begin / grain) * offsets;
  };
  parallel_for(items, grain,
               [&](std::int64_t begin, std::int64_t end) { count(begin, end, of_chunk(begin)); });

  KernelPairs lists;
  lists.offset_begin = Buffer<std::int64_t>(static_cast<std::int64_t>(offsets) + 1);
  std::int64_t position = 0;
  for (std::size_t k = 0; k < offsets; ++k) {
    lists.offset_begin[static_cast<std::int64_t>(k)] = position;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t pairs = next[chunk * offsets + k];
      next[chunk * offsets + k] = position;
      position += pairs;
    }
  }
  lists.offset_begin[static_cast<std::int64_t>(offsets)] = position;
  lists.count = RowCount::exact(position);
  lists.in = Buffer<std::int32_t>(position);
  lists.out = Buffer<std::int32_t>(position);
  parallel_for(items, grain, [&](std::int64_t begin, std::int64_t end) {
    fill(begin, end, PairWriter{of_chunk(begin), lists.in.data(), lists.out.data()});
  });
  return lists;
}

/// A pair as it was found: ranks, and the offset between them.
struct FoundPair {
  std::uint32_t offset;
  std::int32_t in_rank;
  std::int32_t out_rank;
};

/// Memory for what the chunks of a search found, in pieces large enough for the allocator to keep
/// them for the next map: fresh memory would cost as much as the search.
class PairStore {
 public:
  /// A stretch of pairs that one chunk at a time writes to.
  struct Piece {
    FoundPair* next = nullptr;
    FoundPair* end = nullptr;
  };
  /// Room for at least `pairs`.
  Piece take(std::int64_t pairs);
  void give_back(Piece piece);

 private:
  std::mutex mutex_;
  std::vector<Buffer<FoundPair>> memory_;
  std::vector<Piece> free_;   // as many as chunks ran at once
};

/// Where a chunk puts what it finds: room for all offsets of one output at a time.
class PairSink {
 public:
  PairSink(PairStore& store, std::size_t offsets)
      : store_(store),
        offsets_(static_cast<std::int64_t>(offsets)),
        piece_(store.take(offsets_)),
        first_(piece_.next) {}
  PairSink(const PairSink&) = delete;
  PairSink& operator=(const PairSink&) = delete;
  ~PairSink() { store_.give_back(piece_); }

  FoundPair* reserve() {
    if (piece_.end - piece_.next < offsets_) move_on();
    return piece_.next;
  }
  void commit(FoundPair* end) { piece_.next = end; }
  std::span<const FoundPair> found() const { return {first_, piece_.next}; }

 private:
  /// Goes on in a larger piece, taking along what was found.
  void move_on();

  PairStore& store_;
  std::int64_t offsets_;
  PairStore::Piece piece_;
  FoundPair* first_;
};

/// Pairs that need no search: every output of `first_rank(item)` to `first_rank(item + 1)` meets
/// itself through `offset`.
template <class FirstRank> struct IdentityPairs {
  std::size_t offset;
  FirstRank first_rank;
};

/// For searches that cost more than remembering what they found: find(begin, end, sink) appends
/// the pairs of items [begin, end), output ranks ascending, and is called once for each chunk.
/// Those of `identity`, where it is not null, are added.
template <class Find, class FirstRank>
KernelPairs collect_pairs(const CoordinateSet& in, const CoordinateSet& out, std::size_t offsets,
                          std::int64_t items, std::int64_t grain,
                          const IdentityPairs<FirstRank>* identity, Find&& find) {
  PairStore store;
  std::vector<std::span<const FoundPair>> chunks(
      static_cast<std::size_t>((items + grain - 1) / grain));
  const std::int32_t* in_order = in.index().order;
  const std::int32_t* out_order = out.index().order;
  return make_pair_lists(
      offsets, items, grain,
      [&](std::int64_t begin, std::int64_t end, std::int64_t* counts) {
        PairSink sink(store, offsets);
        find(begin, end, sink);
        for (const FoundPair& pair : sink.found())
          ++counts[pair.offset];
        if (identity != nullptr) {
          counts[identity->offset] += identity->first_rank(end) - identity->first_rank(begin);
        }
        chunks[static_cast<std::size_t>(begin / grain)] = sink.found();
      },
      [&](std::int64_t begin, std::int64_t end, const PairWriter& writer) {
        if (identity != nullptr) {
          for (std::int64_t rank = identity->first_rank(begin); rank < identity->first_rank(end);
               ++rank) {
            const auto row =
                out_order == nullptr ? static_cast<std::int32_t>(rank) : out_order[rank];
            writer.write(identity->offset, row, row);
          }
        }
        for (const FoundPair& pair : chunks[static_cast<std::size_t>(begin / grain)]) {
          writer.write(pair.offset, in_order == nullptr ? pair.in_rank : in_order[pair.in_rank],
                       out_order == nullptr ? pair.out_rank : out_order[pair.out_rank]);
        }
      });
}

}   // namespace pumice
