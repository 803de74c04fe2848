// A row at a time, head by head.
#include "ops/cpu/edge_softmax.hpp"

#include <cmath>
#include <limits>

#include "kernels/cpu/row_ranges.hpp"

namespace pumice::cpu {
namespace {

/// The scores of one type.
template <class S> struct Scores {
  using T = compute_t<S>;

  Scores(const CsrView& of, const EdgeScores& from, std::int64_t number_of_heads)
      : pattern(of),
        scores(from),
        heads(number_of_heads),
        slope(static_cast<T>(from.negative_slope)) {}

  /// Before the leaky part.
  T sum(std::int64_t row, std::int64_t place, std::int64_t head) const {
    T total{};
    const auto add = [&](ConstTensorView tensor, std::int64_t at) {
      if (tensor.defined()) total += widen(tensor.data<S>()[at * heads + head]);
    };
    add(scores.target, row);
    add(scores.source, pattern.column[static_cast<std::size_t>(place)]);
    add(scores.entry, pattern.number_of(place));
    return total;
  }
  T score(std::int64_t row, std::int64_t place, std::int64_t head) const {
    const T total = sum(row, place, head);
    const bool is_left =
        total > 0 || total == -std::numeric_limits<T>::infinity();   // 0 · ∞ is NaN
    return is_left ? total : total * slope;
  }

  const CsrView& pattern;
  const EdgeScores& scores;
  std::int64_t heads;
  T slope;
};

/// Calls body(place) for the entries of a row.
template <class Body> void for_entries(const CsrView& pattern, std::int64_t row, Body&& body) {
  for (std::int64_t place = pattern.begin_of(row); place < pattern.end_of(row); ++place)
    body(place);
}

}   // namespace

void edge_softmax(const CsrView& pattern, const EdgeScores& scores, TensorView output) {
  const std::int64_t heads = output.extent(1);
  dispatch_floating(output.dtype(), "edge_softmax", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    const Scores<S> of(pattern, scores, heads);
    for_rows(pattern, heads, [&](std::int64_t row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        T most = std::numeric_limits<T>::lowest(), sum{};
        for_entries(pattern, row, [&](std::int64_t place) {
          const T score = of.score(row, place, head);
          most = score > most ? score : most;
        });
        for_entries(pattern, row, [&](std::int64_t place) {
          sum += std::exp(of.score(row, place, head) - most);
        });
        for_entries(pattern, row, [&](std::int64_t place) {
          output.data<S>()[pattern.number_of(place) * heads + head] =
              narrow<S>(std::exp(of.score(row, place, head) - most) / sum);
        });
      }
    });
  });
}

void edge_softmax_gradient(const CsrView& pattern, const EdgeScores& scores, ConstTensorView output,
                           ConstTensorView grad_output, TensorView gradient) {
  const std::int64_t heads = output.extent(1);
  dispatch_floating(output.dtype(), "edge_softmax_gradient", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    const Scores<S> of(pattern, scores, heads);
    for_rows(pattern, heads, [&](std::int64_t row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        T sum{};
        for_entries(pattern, row, [&](std::int64_t place) {
          const std::int64_t at = pattern.number_of(place) * heads + head;
          sum += widen(output.data<S>()[at]) * widen(grad_output.data<S>()[at]);
        });
        for_entries(pattern, row, [&](std::int64_t place) {
          const std::int64_t at = pattern.number_of(place) * heads + head;
          T value = widen(output.data<S>()[at]) * (widen(grad_output.data<S>()[at]) - sum);
          if (of.slope != 1 && !(of.sum(row, place, head) > 0)) value *= of.slope;
          gradient.data<S>()[at] = narrow<S>(value);
        });
      }
    });
  });
}

void sum_entries(const CsrView& pattern, ConstTensorView values, TensorView sums) {
  const std::int64_t heads = values.extent(1);
  dispatch_floating(values.dtype(), "sum_entries", [&](auto zero) {
    using S = decltype(zero);
    for_rows(pattern, heads, [&](std::int64_t row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        compute_t<S> sum{};
        for_entries(pattern, row, [&](std::int64_t place) {
          sum += widen(values.data<S>()[pattern.number_of(place) * heads + head]);
        });
        sums.data<S>()[row * heads + head] = narrow<S>(sum);
      }
    });
  });
}

}   // namespace pumice::cpu
