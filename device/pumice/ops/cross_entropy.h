// Cross entropy of the rows in use, and its gradient: a warp has a row, whose scores it reads two
// or three times, from cache but for the first.
#pragma once

#include <pumice/ops/cross_entropy_arguments.h>
#include <pumice/platform.h>
#include <pumice/skeleton/poison.h>
#include <pumice/thread/global_access.h>
#include <pumice/thread/leaky.h>
#include <pumice/thread/report.h>
#include <pumice/warp/scan.h>

namespace pumice {

inline constexpr int kLossWarps = kLossThreads / kWarpThreads;

PUMICE_DEVICE int64_t label_of(const LabelledRows& of, int64_t row) {
  return of.wide ? static_cast<const int64_t*>(of.label)[row]
                 : int64_t{static_cast<const int32_t*>(of.label)[row]};
}
PUMICE_DEVICE bool is_class(const LabelledRows& of, int64_t label) {
  return label >= 0 && label < of.classes;
}
PUMICE_DEVICE float class_weight(const LabelledRows& of, int64_t label) {
  return of.weight == nullptr ? 1.0f : of.weight[label];
}
PUMICE_DEVICE float score_of(const LabelledRows& of, int64_t row, int64_t label) {
  return load_element(of.type, of.scores, row * of.classes + label);
}

PUMICE_DEVICE float warp_most(float value) {
  PUMICE_UNROLL
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    const float other = warp_shuffle_xor(value, distance);
    value = other > value ? other : value;
  }
  return value;
}

/// Of a row that counts: its loss, in every lane. `log_sum` becomes log Σ exp(score).
PUMICE_DEVICE float loss_of_row(const LabelledRows& of, int64_t row, int64_t label,
                                float& log_sum) {
  float most = kLeastFloat;
  PUMICE_ROLLED
  for (int32_t c = lane_index(); c < of.classes; c += kWarpThreads) {
    const float score = score_of(of, row, c);
    most = score > most ? score : most;
  }
  most = warp_most(most);
  float sum = 0.0f, weights = 0.0f, weighted = 0.0f;
  PUMICE_ROLLED
  for (int32_t c = lane_index(); c < of.classes; c += kWarpThreads) {
    const float score = score_of(of, row, c) - most;
    sum += expf(score);
    if (of.smoothing == 0.0f) continue;
    weights += class_weight(of, c);
    weighted += class_weight(of, c) * score;
  }
  const float log_of_sum = logf(warp_sum(sum));
  log_sum = most + log_of_sum;
  float loss = class_weight(of, label) * (log_of_sum - (score_of(of, row, label) - most));
  if (of.smoothing != 0.0f) {
    const float of_all = warp_sum(weights) * log_of_sum - warp_sum(weighted);
    const float share = of.smoothing / static_cast<float>(of.classes);
    loss = loss * (1.0f - of.smoothing) + of_all * share;
  }
  return loss;
}

PUMICE_KERNEL PUMICE_THREADS(kLossThreads) void cross_entropy_rows(
    PUMICE_ARGUMENT(CrossEntropyArguments) a) {
  wait_for_previous();
  using Sums = double[static_cast<unsigned>(kLossWarps)][2];
  PUMICE_BLOCK_SHARED(Sums, sums);
  const int64_t begin = int64_t{block_index()} * kLossRows;
  const int64_t end = begin + kLossRows < a.of.rows.rows() ? begin + kLossRows : a.of.rows.rows();
  if (begin >= end) return;
  double loss = 0.0, weight = 0.0;
  PUMICE_ROLLED
  for (int64_t row = begin + warp_index(); row < end; row += kLossWarps) {
    const int64_t label = label_of(a.of, row);
    if (label == a.of.ignored) continue;
    if (!is_class(a.of, label)) {
      if (lane_index() == 0)
        report(a.status, kBadRow, a.site, label, a.of.classes,
               row <= int64_t{0x7fffffff} ? static_cast<int32_t>(row) : -1);
      loss = static_cast<double>(quiet_nan());
      continue;
    }
    float log_sum = 0.0f;
    loss += static_cast<double>(loss_of_row(a.of, row, label, log_sum));
    weight += static_cast<double>(class_weight(a.of, label));
    if (lane_index() == 0) a.log_sum[row] = log_sum;
  }
  if (lane_index() == 0) {
    sums[warp_index()][0] = loss;
    sums[warp_index()][1] = weight;
  }
  block_sync();
  if (thread_index() >= 2) return;
  double total = 0.0;
  PUMICE_UNROLL
  for (int warp = 0; warp < kLossWarps; ++warp)
    total += sums[warp][thread_index()];
  a.partial[int64_t{block_index()} * 2 + thread_index()] = total;
}

/// One block.
PUMICE_KERNEL PUMICE_THREADS(kFinishLossThreads) void finish_cross_entropy(
    PUMICE_ARGUMENT(FinishLossArguments) a) {
  wait_for_previous();
  using Sums = double[static_cast<unsigned>(kFinishLossThreads)][2];
  PUMICE_BLOCK_SHARED(Sums, sums);
  const int64_t blocks = (a.rows.rows() + kLossRows - 1) / kLossRows;
  double loss = 0.0, weight = 0.0;
  PUMICE_UNROLL_BY(4)
  for (int64_t block = thread_index(); block < blocks; block += kFinishLossThreads) {
    loss += a.partial[block * 2];
    weight += a.partial[block * 2 + 1];
  }
  sums[thread_index()][0] = loss;
  sums[thread_index()][1] = weight;
  block_sync();
  PUMICE_ROLLED
  for (int step = kFinishLossThreads / 2; step > 0; step /= 2) {
    if (thread_index() < step) {
      sums[thread_index()][0] += sums[thread_index() + step][0];
      sums[thread_index()][1] += sums[thread_index() + step][1];
    }
    block_sync();
  }
  if (thread_index() != 0) return;
  const bool poisoned = a.rows.poisoned();
  a.loss[0] = poisoned ? quiet_nan() : static_cast<float>(sums[0][0] / sums[0][1]);
  a.weight[0] = poisoned ? quiet_nan() : static_cast<float>(sums[0][1]);
}

/// dx[c] = g · (weight[label] (1 − s) (p[c] − [c = label]) + s / C · (Σ weights · p[c] −
/// weight[c])), p = exp(x − log Σ exp), g = grad_loss / Σ of the weights of all rows.
PUMICE_DEVICE void gradient_of_row(const CrossEntropyGradientArguments& a, int64_t row,
                                   int64_t label) {
  const LabelledRows& of = a.of;
  float weights = 0.0f;
  if (of.smoothing != 0.0f) {
    PUMICE_ROLLED
    for (int32_t c = lane_index(); c < of.classes; c += kWarpThreads)
      weights += class_weight(of, c);
    weights = warp_sum(weights);
  }
  const float factor = a.grad_loss[0] / a.total[0];
  const float share = of.smoothing / static_cast<float>(of.classes);
  const float mine = class_weight(of, label) * (1.0f - of.smoothing);
  const float log_sum = a.log_sum[row];
  PUMICE_ROLLED
  for (int32_t c = lane_index(); c < of.classes; c += kWarpThreads) {
    const float chance = expf(score_of(of, row, c) - log_sum);
    float slope = mine * (c == label ? chance - 1.0f : chance);
    if (of.smoothing != 0.0f) slope += share * (weights * chance - class_weight(of, c));
    store_element(of.type, a.out, row * of.classes + c, factor * slope);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kLossThreads) void cross_entropy_gradient(
    PUMICE_ARGUMENT(CrossEntropyGradientArguments) a) {
  wait_for_previous();
  const LabelledRows& of = a.of;
  if (of.rows.poisoned()) {
    if (element_bytes(of.type) == 4)
      return fill_with_nan<ElementType::f32>(a.out, of.rows.capacity * of.classes);
    return fill_with_nan<ElementType::f16>(a.out, of.rows.capacity * of.classes);
  }
  const int64_t row = int64_t{block_index()} * kLossWarps + warp_index();
  if (row >= of.rows.capacity) return;
  const int64_t label = row < of.rows.rows() ? label_of(of, row) : of.ignored;
  if (label != of.ignored && is_class(of, label)) return gradient_of_row(a, row, label);
  const float value = label == of.ignored ? 0.0f : quiet_nan();
  PUMICE_ROLLED
  for (int32_t c = lane_index(); c < of.classes; c += kWarpThreads)
    store_element(of.type, a.out, row * of.classes + c, value);
}

}   // namespace pumice
