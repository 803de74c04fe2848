// Attention over the entries of each row, its gradient, and sums over the entries of each row. A
// team of threads of a warp takes a row and a head; rows that are listed as long have a block.
//
//   row ─┬─ entry ─ score ─┐  the most, then the sum of exp(score − most), then each share
//        ├─ entry ─ score ─┼─►  three walks over the same scores, from cache but for the first
//        └─ entry ─ score ─┘
#pragma once

#include <pumice/block/scan.h>
#include <pumice/ops/edge_softmax_arguments.h>
#include <pumice/thread/global_access.h>
#include <pumice/thread/leaky.h>

namespace pumice {

/// Threads of one warp that share a row. Lanes of other teams of the warp call at the same time.
struct LaneTeam {
  int32_t threads;
  PUMICE_DEVICE int32_t rank() const { return thread_index() % threads; }
  PUMICE_DEVICE float sum(float value) const {
    for (int32_t mask = threads / 2; mask > 0; mask /= 2)
      value += warp_shuffle_xor(value, mask);
    return value;
  }
  PUMICE_DEVICE float most(float value) const {
    for (int32_t mask = threads / 2; mask > 0; mask /= 2) {
      const float other = warp_shuffle_xor(value, mask);
      value = other > value ? other : value;
    }
    return value;
  }
};

/// A block.
struct BlockTeam {
  int32_t threads = kLongEdgeThreads;
  PUMICE_DEVICE int32_t rank() const { return thread_index(); }
  PUMICE_DEVICE float sum(float value) const { return block_sum<kLongEdgeThreads>(value); }
  PUMICE_DEVICE float most(float value) const { return block_max<kLongEdgeThreads>(value); }
};

/// A row and a head, and the entries of it that a thread goes over; none before `enter`.
struct EdgeRow {
  const EdgeSoftmaxArguments& a;
  int64_t row = 0;
  int32_t head = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int32_t step = 0;

  PUMICE_DEVICE explicit EdgeRow(const EdgeSoftmaxArguments& arguments) : a(arguments) {}
  /// `item`: rows and their heads, counted up.
  PUMICE_DEVICE void find(int64_t item) {
    row = item / a.heads;
    head = static_cast<int32_t>(item % a.heads);
  }
  template <class Team> PUMICE_DEVICE void enter(const Team& team) {
    begin = a.pattern.row_begin[row] + team.rank();
    end = a.pattern.row_begin[row + 1];
    step = team.threads;
  }

  PUMICE_DEVICE int64_t entries() const {
    return a.pattern.row_begin[row + 1] - a.pattern.row_begin[row];
  }
  /// Where the values of an entry stand.
  PUMICE_DEVICE int64_t at(int64_t place) const {
    const int64_t number = a.pattern.number == nullptr ? place : a.pattern.number[place];
    return number * a.heads + head;
  }
  /// Before the leaky part.
  PUMICE_DEVICE float sum_of_scores(int64_t place) const {
    float sum = 0;
    if (a.scores.target != nullptr)
      sum += load_element(a.type, a.scores.target, row * a.heads + head);
    if (a.scores.source != nullptr)
      sum +=
          load_element(a.type, a.scores.source, int64_t{a.pattern.column[place]} * a.heads + head);
    if (a.scores.entry != nullptr) sum += load_element(a.type, a.scores.entry, at(place));
    return sum;
  }
  PUMICE_DEVICE float score(int64_t place) const {
    return leaky(sum_of_scores(place), a.scores.slope);
  }
};

struct SoftmaxOfRow {
  template <class Team> PUMICE_DEVICE static void run(const EdgeRow& of, const Team& team) {
    float most = kLeastFloat;
    PUMICE_ROLLED
    for (int64_t place = of.begin; place < of.end; place += of.step) {
      const float score = of.score(place);
      most = score > most ? score : most;
    }
    most = team.most(most);
    float sum = 0;
    PUMICE_ROLLED
    for (int64_t place = of.begin; place < of.end; place += of.step)
      sum += expf(of.score(place) - most);
    sum = team.sum(sum);
    PUMICE_ROLLED
    for (int64_t place = of.begin; place < of.end; place += of.step)
      store_element(of.a.type, of.a.result, of.at(place), expf(of.score(place) - most) / sum);
  }
};

/// share · (gradient − Σ share · gradient), times the slope where the leaky part is.
struct SoftmaxGradientOfRow {
  template <class Team> PUMICE_DEVICE static void run(const EdgeRow& of, const Team& team) {
    const EdgeSoftmaxArguments& a = of.a;
    float sum = 0;
    PUMICE_ROLLED
    for (int64_t place = of.begin; place < of.end; place += of.step) {
      const int64_t at = of.at(place);
      sum += load_element(a.type, a.output, at) * load_element(a.type, a.grad, at);
    }
    sum = team.sum(sum);
    PUMICE_ROLLED
    for (int64_t place = of.begin; place < of.end; place += of.step) {
      const int64_t at = of.at(place);
      float value = load_element(a.type, a.output, at) * (load_element(a.type, a.grad, at) - sum);
      if (a.scores.slope != 1 && !(of.sum_of_scores(place) > 0)) value *= a.scores.slope;
      store_element(a.type, a.result, at, value);
    }
  }
};

/// Of `grad`, into the row.
struct SumOfRow {
  template <class Team> PUMICE_DEVICE static void run(const EdgeRow& of, const Team& team) {
    float sum = 0;
    PUMICE_ROLLED
    for (int64_t place = of.begin; place < of.end; place += of.step)
      sum += load_element(of.a.type, of.a.grad, of.at(place));
    sum = team.sum(sum);
    if (team.rank() == 0 && of.step > 0)
      store_element(of.a.type, of.a.result, of.row * of.a.heads + of.head, sum);
  }
};

template <class OfRow> PUMICE_DEVICE void for_short_rows(const EdgeSoftmaxArguments& a) {
  const LaneTeam team{a.team};
  const int64_t item = global_thread_index() / a.team;
  EdgeRow of(a);   // left without entries, it takes part in what the warp does together
  if (item < a.pattern.rows * a.heads) {
    of.find(item);
    if (a.pattern.long_rows.counts == nullptr || of.entries() <= a.pattern.long_rows.part_entries)
      of.enter(team);
  }
  OfRow::run(of, team);
}

/// A block each: as many as there can be, since a loop around the barriers spilled.
template <class OfRow> PUMICE_DEVICE void for_long_rows(const EdgeSoftmaxArguments& a) {
  const int64_t item = block_index();
  if (item >= int64_t{a.pattern.long_rows.counts[1]} * a.heads) return;
  const BlockTeam team;
  EdgeRow of(a);
  of.find(a.pattern.long_rows.row[item / a.heads].row * int64_t{a.heads} + item % a.heads);
  of.enter(team);
  OfRow::run(of, team);
}

PUMICE_KERNEL PUMICE_THREADS(kEdgeThreads) void edge_softmax(PUMICE_ARGUMENT(EdgeSoftmaxArguments)
                                                                 a) {
  wait_for_previous();
  for_short_rows<SoftmaxOfRow>(a);
}
PUMICE_KERNEL PUMICE_THREADS(kLongEdgeThreads) void edge_softmax_long(
    PUMICE_ARGUMENT(EdgeSoftmaxArguments) a) {
  wait_for_previous();
  for_long_rows<SoftmaxOfRow>(a);
}
PUMICE_KERNEL PUMICE_THREADS(kEdgeThreads) void edge_softmax_gradient(
    PUMICE_ARGUMENT(EdgeSoftmaxArguments) a) {
  wait_for_previous();
  for_short_rows<SoftmaxGradientOfRow>(a);
}
PUMICE_KERNEL PUMICE_THREADS(kLongEdgeThreads) void edge_softmax_gradient_long(
    PUMICE_ARGUMENT(EdgeSoftmaxArguments) a) {
  wait_for_previous();
  for_long_rows<SoftmaxGradientOfRow>(a);
}
PUMICE_KERNEL PUMICE_THREADS(kEdgeThreads) void sum_entries(PUMICE_ARGUMENT(EdgeSoftmaxArguments)
                                                                a) {
  wait_for_previous();
  for_short_rows<SumOfRow>(a);
}
PUMICE_KERNEL PUMICE_THREADS(kLongEdgeThreads) void sum_entries_long(
    PUMICE_ARGUMENT(EdgeSoftmaxArguments) a) {
  wait_for_previous();
  for_long_rows<SumOfRow>(a);
}

}   // namespace pumice
