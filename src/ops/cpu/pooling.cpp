// Pooling by output: the pairs of a map are grouped by output row, so every output is one sum or
// maximum over its inputs in the order of offsets, written once.
#include "ops/cpu/pooling.hpp"

#include <atomic>
#include <vector>

#include "core/row_groups.hpp"
#include "ops/cpu/widened.hpp"

namespace pumice::cpu {
namespace {

/// Calls body(out_row, pairs) for every output row of `map`, in the order in which neighbours are
/// close in memory; the rows of `in` that the next output but one needs are on their way by then.
template <class T, class Body>
void for_outputs(const T* in, const KernelMapView& map, std::int64_t channels, const Body& body) {
  constexpr std::int64_t kAhead = 2;
  const RowGroups pairs = group_rows(map.out, map.out_rows);
  const std::int64_t mean_pairs = map.out_rows == 0 ? 0 : map.pairs() / map.out_rows;
  parallel_for(map.out_rows, row_grain(channels * (1 + mean_pairs)),
               [&](std::int64_t begin, std::int64_t end) {
                 const auto row_at = [&](std::int64_t rank) -> std::int64_t {
                   return map.out_order.empty() ? rank
                                                : map.out_order[static_cast<std::size_t>(rank)];
                 };
                 for (std::int64_t rank = begin; rank < end; ++rank) {
                   if (rank + kAhead < end) {
                     for (const std::int64_t pair : pairs.of(row_at(rank + kAhead))) {
                       const std::int32_t row = map.in[static_cast<std::size_t>(pair)];
                       prefetch_row(in + row * channels, channels);
                     }
                   }
                   const std::int64_t row = row_at(rank);
                   body(row, pairs.of(row));
                 }
               });
}

template <class T>
void max_typed(const T* in, const KernelMapView& map, std::int64_t channels, T* out,
               std::int32_t* argmax) {
  using C = compute_t<T>;
  for_outputs(in, map, channels, [&](std::int64_t row, std::span<const std::int64_t> pairs) {
    C best[kPiece];
    C scratch[kPiece];
    for (std::int64_t begin = 0; begin < channels; begin += kPiece) {
      const std::int64_t n = std::min(kPiece, channels - begin);
      std::int32_t* const from = argmax + row * channels + begin;
      if (pairs.empty()) {
        std::fill(best, best + n, C{0});
        std::fill(from, from + n, -1);
      }
      bool first = true;
      for (const std::int64_t pair : pairs) {
        const std::int32_t in_row = map.in[static_cast<std::size_t>(pair)];
        const C* const x = widened(in + in_row * channels + begin, scratch, n);
        if (std::exchange(first, false)) {
          std::copy(x, x + n, best);
          std::fill(from, from + n, in_row);
          continue;
        }
        PUMICE_INDEPENDENT
        for (std::int64_t c = 0; c < n; ++c) {
          // True for x above best and for the first NaN.
          const bool takes = !(x[c] <= best[c]) && best[c] == best[c];
          best[c] = takes ? x[c] : best[c];
          from[c] = takes ? in_row : from[c];
        }
      }
      narrow_row(best, out + row * channels + begin, n);
    }
  });
}

/// Sums over the pairs of each output what `add(sum, x, row, in_row, begin, n)` makes of x,
/// channels [begin, begin + n) of input row `in_row`.
template <class T, class Add, class Finish>
void sum_typed(const T* in, const KernelMapView& map, std::int64_t channels, T* out, const Add& add,
               const Finish& finish) {
  using C = compute_t<T>;
  for_outputs(in, map, channels, [&](std::int64_t row, std::span<const std::int64_t> pairs) {
    C sum[kPiece];
    C scratch[kPiece];
    for (std::int64_t begin = 0; begin < channels; begin += kPiece) {
      const std::int64_t n = std::min(kPiece, channels - begin);
      std::fill(sum, sum + n, C{0});
      for (const std::int64_t pair : pairs) {
        const std::int64_t in_row = map.in[static_cast<std::size_t>(pair)];
        add(sum, widened(in + in_row * channels + begin, scratch, n), row, in_row, begin, n);
      }
      finish(sum, pairs.size(), n);
      narrow_row(sum, out + row * channels + begin, n);
    }
  });
}

const auto add_all = [](auto* sum, const auto* x, auto, auto, auto, std::int64_t n) {
  PUMICE_INDEPENDENT
  for (std::int64_t c = 0; c < n; ++c)
    sum[c] += x[c];
};
const auto leave = [](auto*, std::size_t, std::int64_t) {};
const auto divide = []<class C>(C* sum, std::size_t count, std::int64_t n) {
  if (count == 0) return;
  const C divisor = static_cast<C>(count);
  for (std::int64_t c = 0; c < n; ++c)
    sum[c] /= divisor;
};

}   // namespace

void max_pool(ConstTensorView features, const KernelMapView& map, TensorView output,
              TensorView argmax) {
  dispatch_floating(features.dtype(), "max_pool", [&]<class T>(T) {
    max_typed(features.data<T>(), map, features.extent(1), output.data<T>(),
              argmax.data<std::int32_t>());
  });
}

void sum_pool(ConstTensorView features, const KernelMapView& map, bool average, TensorView output) {
  dispatch_floating(features.dtype(), "sum_pool", [&]<class T>(T) {
    const T* in = features.data<T>();
    if (average)
      sum_typed(in, map, features.extent(1), output.data<T>(), add_all, divide);
    else
      sum_typed(in, map, features.extent(1), output.data<T>(), add_all, leave);
  });
}

void max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                       const KernelMapView& map, TensorView grad_features) {
  const std::int64_t channels = grad_output.extent(1);
  const auto* chosen = argmax.data<std::int32_t>();
  dispatch_floating(grad_output.dtype(), "max_pool_gradient", [&]<class T>(T) {
    const auto add = [&](auto* sum, const auto* g, std::int64_t in_row, std::int64_t out_row,
                         std::int64_t begin, std::int64_t n) {
      const std::int32_t* from = chosen + out_row * channels + begin;
      const auto self = static_cast<std::int32_t>(in_row);
      PUMICE_INDEPENDENT
      for (std::int64_t c = 0; c < n; ++c) {
        sum[c] += from[c] == self ? g[c] : compute_t<T>{0};
      }
    };
    sum_typed(grad_output.data<T>(), transposed(map), channels, grad_features.data<T>(), add,
              leave);
  });
}

void average_pool_gradient(ConstTensorView grad_output, const KernelMapView& map,
                           TensorView grad_features) {
  Buffer<std::int32_t> inputs_of(map.out_rows);
  std::fill(inputs_of.span().begin(), inputs_of.span().end(), 0);
  parallel_for(map.pairs(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t pair = begin; pair < end; ++pair) {
      const std::atomic_ref<std::int32_t> count(inputs_of[map.out[static_cast<std::size_t>(pair)]]);
      count.fetch_add(1, std::memory_order_relaxed);
    }
  });
  dispatch_floating(grad_output.dtype(), "average_pool_gradient", [&]<class T>(T) {
    const auto add = [&](auto* sum, const auto* g, std::int64_t, std::int64_t out_row, std::int64_t,
                         std::int64_t n) {
      const auto divisor = static_cast<compute_t<T>>(inputs_of[out_row]);
      PUMICE_INDEPENDENT
      for (std::int64_t c = 0; c < n; ++c)
        sum[c] += g[c] / divisor;
    };
    sum_typed(grad_output.data<T>(), transposed(map), grad_output.extent(1),
              grad_features.data<T>(), add, leave);
  });
}

}   // namespace pumice::cpu
