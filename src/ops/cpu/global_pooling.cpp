// Global pooling and broadcasting: reductions over fixed chunks of the rows of each batch item.
#include "ops/cpu/global_pooling.hpp"

#include <vector>

#include "ops/cpu/row_chunks.hpp"
#include "ops/cpu/row_numbers.hpp"

namespace pumice::cpu {
namespace {

template <class T>
void max_typed(const T* in, const RowChunks& rows, std::int64_t channels, T* out,
               std::int32_t* argmax) {
  using C = compute_t<T>;
  const auto chunks = static_cast<std::int64_t>(rows.chunks().size());
  Buffer<C> best(chunks * channels);
  Buffer<std::int32_t> from(chunks * channels);
  parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<C> scratch(static_cast<std::size_t>(channels));
    for (std::int64_t i = first; i < last; ++i) {
      const RowChunk& chunk = rows.chunks()[static_cast<std::size_t>(i)];
      C* const value = best.data() + i * channels;
      std::int32_t* const source = from.data() + i * channels;
      for (std::int64_t p = chunk.begin; p < chunk.end; ++p) {
        const auto row = static_cast<std::int32_t>(rows.row(p));
        const C* const x = widened(in + row * channels, scratch.data(), channels);
        if (p == chunk.begin) {
          std::copy(x, x + channels, value);
          std::fill(source, source + channels, row);
          continue;
        }
        PUMICE_INDEPENDENT
        for (std::int64_t c = 0; c < channels; ++c) {
          const bool takes = !(x[c] <= value[c]) && value[c] == value[c];
          value[c] = takes ? x[c] : value[c];
          source[c] = takes ? row : source[c];
        }
      }
    }
  });
  std::vector<C> total(static_cast<std::size_t>(rows.items() * channels), C{0});
  std::fill(argmax, argmax + rows.items() * channels, -1);
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t item = rows.chunks()[static_cast<std::size_t>(i)].item;
    for (std::int64_t c = 0; c < channels; ++c) {
      C& value = total[static_cast<std::size_t>(item * channels + c)];
      std::int32_t& source = argmax[item * channels + c];
      const C x = best[i * channels + c];
      if (source < 0 || (!(x <= value) && value == value)) {
        value = x;
        source = from[i * channels + c];
      }
    }
  }
  narrow_row(total.data(), out, rows.items() * channels);
}

/// Rounds sums in double to the storage type, divided by the rows of each item if `average`.
template <class T>
void store_items(const std::vector<double>& sums, const RowChunks& rows, std::int64_t channels,
                 bool average, T* out) {
  for (std::int64_t item = 0; item < rows.items(); ++item) {
    const std::int64_t count = average ? std::max<std::int64_t>(1, rows.rows_of(item)) : 1;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double sum = sums[static_cast<std::size_t>(item * channels + c)];
      out[item * channels + c] =
          narrow<T>(static_cast<compute_t<T>>(sum / static_cast<double>(count)));
    }
  }
}

}   // namespace

void global_max_pool(ConstTensorView features, const CoordinateSet& set, TensorView output,
                     TensorView argmax) {
  const std::int64_t channels = features.extent(1);
  const RowChunks rows(set, channels);
  dispatch_floating(features.dtype(), "global_max_pool", [&]<class T>(T) {
    max_typed(features.data<T>(), rows, channels, output.data<T>(), argmax.data<std::int32_t>());
  });
}

void global_sum_pool(ConstTensorView features, const CoordinateSet& set, bool average,
                     TensorView output) {
  const std::int64_t channels = features.extent(1);
  if (channels == 0) return;
  const RowChunks rows(set, channels);
  dispatch_floating(features.dtype(), "global_sum_pool", [&]<class T>(T) {
    const auto add = [](const auto& sums, std::int64_t, const auto* x, std::int64_t n) {
      double* const sum = sums[0];
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i)
        sum[i] += static_cast<double>(x[i]);
    };
    store_items(column_sums<1>(rows, channels, add, features.data<T>()), rows, channels, average,
                output.data<T>());
  });
}

void global_product_sum(ConstTensorView left, ConstTensorView right, const CoordinateSet& set,
                        TensorView items) {
  const std::int64_t channels = left.extent(1);
  if (channels == 0) return;
  const RowChunks rows(set, channels);
  dispatch_floating(left.dtype(), "global_product_sum", [&]<class T>(T) {
    const auto add = [](const auto& sums, std::int64_t, const auto* x, const auto* y,
                        std::int64_t n) {
      double* const sum = sums[0];
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        sum[i] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
      }
    };
    store_items(column_sums<1>(rows, channels, add, left.data<T>(), right.data<T>()), rows,
                channels, false, items.data<T>());
  });
}

void global_max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                              TensorView grad_features) {
  const std::int64_t channels = grad_output.extent(1);
  const auto* from = argmax.data<std::int32_t>();
  check_row_table(argmax, grad_features.rows(), "global_max_pool_gradient", "argmax");
  dispatch_floating(grad_output.dtype(), "global_max_pool_gradient", [&]<class T>(T) {
    const T* grad = grad_output.data<T>();
    T* out = grad_features.data<T>();
    for (std::int64_t i = 0; i < grad_output.elements(); ++i) {
      if (from[i] >= 0) out[from[i] * channels + i % channels] = grad[i];
    }
  });
}

void broadcast(ConstTensorView items, const CoordinateSet& set, bool average, TensorView output) {
  const std::int64_t channels = items.extent(1);
  const Buffer<std::int32_t> batch = batch_of_rows(set);
  std::vector<std::int64_t> rows_of(static_cast<std::size_t>(set.batch_size()), 0);
  for (const std::int32_t item : batch.span())
    ++rows_of[static_cast<std::size_t>(item)];
  dispatch_floating(items.dtype(), "broadcast", [&]<class T>(T) {
    std::vector<T> values(items.span<T>().begin(), items.span<T>().end());
    if (average) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t count = rows_of[i / static_cast<std::size_t>(channels)];
        values[i] = narrow<T>(widen(values[i]) / static_cast<compute_t<T>>(count));
      }
    }
    T* const out = output.data<T>();
    parallel_for(set.size(), row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::copy_n(values.data() + batch[row] * channels, channels, out + row * channels);
      }
    });
  });
}

void broadcast_join(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                    Join join, TensorView output) {
  const std::int64_t channels = features.extent(1);
  const std::int64_t item_channels = items.extent(1);
  const Buffer<std::int32_t> batch = batch_of_rows(set);
  dispatch_floating(features.dtype(), "broadcast_join", [&]<class T>(T) {
    const T* const x = features.data<T>();
    const T* const y = items.data<T>();
    T* const out = output.data<T>();
    const auto add = [](auto* to, const auto* a, const auto* b, std::int64_t n) {
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = a[i] + b[i];
    };
    const auto multiply = [](auto* to, const auto* a, const auto* b, std::int64_t n) {
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = a[i] * b[i];
    };
    parallel_for(set.size(), row_grain(output.extent(1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const T* const a = x + row * channels;
                     const T* const b = y + batch[row] * item_channels;
                     T* const to = out + row * output.extent(1);
                     switch (join) {
                       case Join::add: for_pieces(to, channels, add, a, b); break;
                       case Join::multiply: for_pieces(to, channels, multiply, a, b); break;
                       case Join::concatenate:
                         std::copy_n(a, channels, to);
                         std::copy_n(b, item_channels, to + channels);
                         break;
                     }
                   }
                 });
  });
}

}   // namespace pumice::cpu
