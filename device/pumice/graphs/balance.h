// Shares the rows of a pattern out, so that threads have about as much to do: long rows are cut
// into parts, and rows stand together in units of kUnitWork rows and entries.
#pragma once

#include <pumice/block/scan.h>
#include <pumice/graphs/balance_arguments.h>
#include <pumice/grid/look_back.h>
#include <pumice/platform.h>
#include <pumice/thread/search.h>

namespace pumice {

/// Lists those rows of a tile that are long, in the order of the rows: what is summed over parts
/// has the same bits every time. A count of parts and one of rows, of 31 bits each, share a word.
PUMICE_DEVICE void list_long_rows(const BalanceArguments& a, int32_t tile, int64_t row) {
  constexpr int kBits = 31;
  const int64_t entries = row < a.rows ? a.row_begin[row + 1] - a.row_begin[row] : 0;
  const int64_t parts =
      entries > a.part_entries ? (entries + a.part_entries - 1) / a.part_entries : 0;
  const uint64_t mine = parts > 0 ? static_cast<uint64_t>(parts) << kBits | 1 : 0;
  uint64_t of_tile = 0;
  const uint64_t before_mine = block_exclusive_sum<kBalanceThreads>(mine, of_tile);
  PUMICE_BLOCK_SHARED(uint64_t, before_tile);
  if (thread_index() == 0) {
    say_part(a.states, 1, tile, of_tile);
    before_tile = look_back(a.states, 1, tile);
    const uint64_t sum = before_tile + of_tile;
    say_sum(a.states, 1, tile, sum);
    if ((int64_t{tile} + 1) * kBalanceThreads >= a.rows) {
      a.counts[0] = static_cast<int32_t>(sum >> kBits);
      a.counts[1] = static_cast<int32_t>(sum & ((uint64_t{1} << kBits) - 1));
    }
  }
  block_sync();
  if (parts == 0) return;
  const uint64_t before = before_tile + before_mine;
  const auto first = static_cast<int32_t>(before >> kBits);
  const auto place = static_cast<int64_t>(before & ((uint64_t{1} << kBits) - 1));
  a.row[place] = {static_cast<int32_t>(row), first, static_cast<int32_t>(parts)};
  PUMICE_ROLLED
  for (int32_t part = 0; part < parts; ++part)
    a.part[first + part] = {static_cast<int32_t>(row), part};
}

PUMICE_KERNEL
PUMICE_THREADS(kBalanceThreads) void balance_rows(PUMICE_ARGUMENT(BalanceArguments) a) {
  wait_for_previous();
  const bool lists = a.counts != nullptr;
  const int32_t tile = lists ? take_tile(a.ticket) : block_index();
  const int64_t at = int64_t{tile} * kBalanceThreads + thread_index();
  if (at <= a.units) {
    const auto work_before = [&](int64_t row) { return a.row_begin[row] + row; };
    a.unit_row[at] = static_cast<int32_t>(first_not_below(work_before, a.rows, at * kUnitWork));
  }
  if (lists && int64_t{tile} * kBalanceThreads < a.rows) list_long_rows(a, tile, at);
}

}   // namespace pumice
