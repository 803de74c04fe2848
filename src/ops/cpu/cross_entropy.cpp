// A row at a time: the largest score, the sum of the others' distances to it, the loss.
#include "ops/cpu/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <pumice/core/parallel.hpp>

#include "ops/cpu/vector_math.hpp"

namespace pumice::cpu {
namespace {

constexpr std::int64_t kChunkRows = 256;   // partial sums are of so many rows

/// Labels of either type.
class Labels {
 public:
  Labels(ConstTensorView labels, std::int64_t ignored)
      : wide_(labels.dtype() == DType::i64 ? labels.data<std::int64_t>() : nullptr),
        narrow_(labels.dtype() == DType::i32 ? labels.data<std::int32_t>() : nullptr),
        ignored_(ignored) {}
  std::int64_t operator[](std::int64_t row) const {
    return wide_ != nullptr ? wide_[row] : narrow_[row];
  }
  bool counts(std::int64_t row) const { return (*this)[row] != ignored_; }

 private:
  const std::int64_t* wide_;
  const std::int32_t* narrow_;
  std::int64_t ignored_;
};

/// Of one floating type.
template <class S> struct Rows {
  using T = compute_t<S>;

  Rows(ConstTensorView scores, const CrossEntropyOptions& options)
      : score(scores.data<S>()),
        classes(scores.extent(1)),
        weight(options.weight.defined() ? options.weight.data<T>() : nullptr),
        smoothing(static_cast<T>(options.smoothing)),
        share(static_cast<T>(options.smoothing / static_cast<double>(classes))) {
    for (std::int64_t c = 0; c < classes; ++c)
      weights += weight_of(c);
  }

  T weight_of(std::int64_t c) const { return weight != nullptr ? weight[c] : T{1}; }

  /// Scores of a row in the compute type; returns the largest.
  T read(std::int64_t row, T* to) const {
    const S* const from = score + row * classes;
    for (std::int64_t c = 0; c < classes; ++c)
      to[c] = widen(from[c]);
    T most = to[0];
    for (std::int64_t c = 1; c < classes; ++c)
      most = to[c] > most ? to[c] : most;
    return most;
  }

  /// `x`: room for a row.
  T loss(std::int64_t row, std::int64_t label, T* x, T& log_sum) const {
    const T most = read(row, x);
    const T own = x[label] - most;
    T weighted{};
    if (smoothing != 0) {
      for (std::int64_t c = 0; c < classes; ++c)
        weighted += weight_of(c) * (x[c] - most);
    }
    for (std::int64_t c = 0; c < classes; ++c)
      x[c] = exp_of(x[c] - most);
    T sum{};
    for (std::int64_t c = 0; c < classes; ++c)
      sum += x[c];
    const T log_of_sum = std::log(sum);
    log_sum = most + log_of_sum;
    const T of_label = weight_of(label) * (log_of_sum - own);
    if (smoothing == 0) return of_label;
    return of_label * (1 - smoothing) + (weights * log_of_sum - weighted) * share;
  }

  void gradient(std::int64_t row, std::int64_t label, T log_sum, T factor, T* x, S* to) const {
    read(row, x);
    for (std::int64_t c = 0; c < classes; ++c)
      x[c] = exp_of(x[c] - log_sum);
    const T mine = weight_of(label) * (1 - smoothing);
    for (std::int64_t c = 0; c < classes; ++c) {
      T slope = mine * (c == label ? x[c] - 1 : x[c]);
      if (smoothing != 0) slope += share * (weights * x[c] - weight_of(c));
      to[c] = narrow<S>(factor * slope);
    }
  }

  const S* score;
  std::int64_t classes;
  const T* weight;
  T smoothing;
  T share;
  T weights{};   // of all classes
};

/// The first row whose label is none of the classes, or -1.
std::int64_t find_mistake(const Labels& labels, std::int64_t rows, std::int64_t classes) {
  for (std::int64_t row = 0; row < rows; ++row) {
    if (labels.counts(row) && (labels[row] < 0 || labels[row] >= classes)) return row;
  }
  return -1;
}

}   // namespace

LossSums cross_entropy(ConstTensorView scores, ConstTensorView labels,
                       const CrossEntropyOptions& options, TensorView log_sum) {
  const std::int64_t rows = scores.rows(), classes = scores.extent(1);
  const Labels label(labels, options.ignored);
  const std::int64_t mistake = find_mistake(label, rows, classes);
  PUMICE_EXPECTS(mistake < 0, "cross_entropy: labels[", mistake, "] = ", label[mistake],
                 " is no class; classes are 0 to ", classes - 1, ", and ", options.ignored,
                 " is for rows that do not count");
  const std::int64_t chunks = (rows + kChunkRows - 1) / kChunkRows;
  std::vector<LossSums> sums(static_cast<std::size_t>(chunks));
  dispatch_floating(scores.dtype(), "cross_entropy", [&]<class S>(S) {
    using T = compute_t<S>;
    const Rows<S> of(scores, options);
    parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<T> room(static_cast<std::size_t>(classes));
      for (std::int64_t chunk = first; chunk < last; ++chunk) {
        LossSums& sum = sums[static_cast<std::size_t>(chunk)];
        const std::int64_t end = std::min(rows, (chunk + 1) * kChunkRows);
        for (std::int64_t row = chunk * kChunkRows; row < end; ++row) {
          if (!label.counts(row)) continue;
          sum.loss += double{of.loss(row, label[row], room.data(), log_sum.data<T>()[row])};
          sum.weight += double{of.weight_of(label[row])};
        }
      }
    });
  });
  LossSums total;
  for (const LossSums& sum : sums) {
    total.loss += sum.loss;
    total.weight += sum.weight;
  }
  return total;
}

void cross_entropy_gradient(ConstTensorView scores, ConstTensorView labels,
                            const CrossEntropyOptions& options, ConstTensorView log_sum,
                            double factor, TensorView output) {
  const std::int64_t rows = scores.rows(), classes = scores.extent(1);
  const Labels label(labels, options.ignored);
  dispatch_floating(scores.dtype(), "cross_entropy_gradient", [&]<class S>(S) {
    using T = compute_t<S>;
    const Rows<S> of(scores, options);
    parallel_for(rows, kChunkRows, [&](std::int64_t first, std::int64_t last) {
      std::vector<T> room(static_cast<std::size_t>(classes));
      for (std::int64_t row = first; row < last; ++row) {
        S* const to = output.data<S>() + row * classes;
        if (!label.counts(row)) {
          std::fill(to, to + classes, narrow<S>(T{0}));
          continue;
        }
        of.gradient(row, label[row], log_sum.data<T>()[row], static_cast<T>(factor), room.data(),
                    to);
      }
    });
  });
}

}   // namespace pumice::cpu
