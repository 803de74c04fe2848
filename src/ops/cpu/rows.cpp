// Gathers, and scatters turned into gathers: every row of a result has one owner.
#include "ops/cpu/rows.hpp"

#include <cstring>
#include <vector>

#include "core/row_groups.hpp"
#include "ops/cpu/row_numbers.hpp"
#include "ops/cpu/widened.hpp"

namespace pumice::cpu {
namespace {

/// to[i] = from[rows[i]], or zeros for a negative row, as bytes.
template <class Rows>
void gather_bytes(const std::byte* from, const Rows& rows, std::int64_t count, std::size_t bytes,
                  std::byte* to) {
  if (bytes == 0) return;
  parallel_for(count, row_grain(static_cast<std::int64_t>(bytes / 4)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   std::byte* const place = to + static_cast<std::size_t>(i) * bytes;
                   const auto row = static_cast<std::int64_t>(rows(i));
                   if (row < 0)
                     std::memset(place, 0, bytes);
                   else
                     std::memcpy(place, from + static_cast<std::size_t>(row) * bytes, bytes);
                 }
               });
}

/// Σ of the rows of each group in ascending position, in `Sum` (float or double).
template <class Sum, class T, class Finish>
void sum_groups(const T* in, const RowGroups& groups, std::int64_t rows, std::int64_t channels,
                T* out, const Finish& finish) {
  constexpr std::int64_t kAhead = 8;   // positions
  parallel_for(rows, row_grain(2 * channels), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = groups.begin[end];
    std::int64_t ahead = groups.begin[begin] + kAhead;
    Sum sum[kPiece];
    compute_t<T> scratch[kPiece];
    for (std::int64_t row = begin; row < end; ++row) {
      const auto members = groups.of(row);
      for (std::int64_t first = 0; first < channels; first += kPiece) {
        const std::int64_t n = std::min(kPiece, channels - first);
        std::fill(sum, sum + n, Sum{0});
        for (const std::int64_t position : members) {
          if (first == 0 && ahead < last) {
            prefetch_row(in + groups.position[ahead++] * channels, channels);
          }
          const auto* const x = widened(in + position * channels + first, scratch, n);
          PUMICE_INDEPENDENT
          for (std::int64_t c = 0; c < n; ++c)
            sum[c] += static_cast<Sum>(x[c]);
        }
        finish(sum, members.size(), n);
        for (std::int64_t c = 0; c < n; ++c)
          scratch[c] = static_cast<compute_t<T>>(sum[c]);
        narrow_row(scratch, out + row * channels + first, n);
      }
    }
  });
}

}   // namespace

void take_rows(ConstTensorView features, ConstTensorView rows, TensorView output) {
  const auto bytes = static_cast<std::size_t>(features.row_elements()) * size_of(features.dtype());
  dispatch_rows(rows, [&](auto values) {
    gather_bytes(
        static_cast<const std::byte*>(features.raw()),
        [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }, rows.rows(), bytes,
        static_cast<std::byte*>(output.raw()));
  });
}

void scatter_rows(ConstTensorView grad_output, ConstTensorView rows, TensorView grad_features) {
  const std::int64_t channels = grad_output.row_elements();
  const std::int64_t in_rows = grad_features.rows();
  dispatch_rows(rows, [&](auto values) {
    const Buffer<std::int64_t> inverse = invert_rows(values, in_rows);
    if (inverse.size() == in_rows) {
      const auto bytes = static_cast<std::size_t>(channels) * size_of(grad_output.dtype());
      gather_bytes(
          static_cast<const std::byte*>(grad_output.raw()),
          [&](std::int64_t i) { return inverse[i]; }, in_rows, bytes,
          static_cast<std::byte*>(grad_features.raw()));
      return;
    }
    const RowGroups groups = group_rows(values, in_rows);
    dispatch_floating(grad_output.dtype(), "scatter_rows", [&]<class T>(T) {
      sum_groups<compute_t<T>>(grad_output.data<T>(), groups, in_rows, channels,
                               grad_features.data<T>(), [](auto*, std::size_t, std::int64_t) {});
    });
  });
}

void reduce_sum(ConstTensorView features, ConstTensorView row_of, bool mean, TensorView output) {
  const RowGroups groups =
      dispatch_rows(row_of, [&](auto rows) { return group_rows(rows, output.rows()); });
  dispatch_floating(features.dtype(), "reduce_rows", [&]<class T>(T) {
    const auto divide = [&](double* sum, std::size_t count, std::int64_t n) {
      if (!mean || count < 2) return;
      for (std::int64_t c = 0; c < n; ++c)
        sum[c] /= static_cast<double>(count);
    };
    sum_groups<double>(features.data<T>(), groups, output.rows(), features.extent(1),
                       output.data<T>(), divide);
  });
}

void reduce_max(ConstTensorView features, ConstTensorView row_of, TensorView output,
                TensorView source) {
  const std::int64_t channels = features.extent(1);
  const RowGroups groups =
      dispatch_rows(row_of, [&](auto rows) { return group_rows(rows, output.rows()); });
  auto* const from = source.data<std::int32_t>();
  dispatch_floating(features.dtype(), "reduce_rows", [&]<class T>(T) {
    const T* const in = features.data<T>();
    T* const out = output.data<T>();
    parallel_for(output.rows(), row_grain(2 * channels), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        T* const best = out + row * channels;
        std::int32_t* const chosen = from + row * channels;
        const auto members = groups.of(row);
        if (members.empty())
          std::fill_n(best, channels, T{});
        else
          std::copy_n(in + members.front() * channels, channels, best);
        std::fill_n(chosen, channels,
                    members.empty() ? -1 : static_cast<std::int32_t>(members.front()));
        for (const std::int64_t position : members.subspan(members.empty() ? 0 : 1)) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const T candidate = in[position * channels + c];
            const auto x = widen(candidate);
            const auto y = widen(best[c]);
            const bool takes = !(x <= y) && y == y;
            best[c] = takes ? candidate : best[c];
            chosen[c] = takes ? static_cast<std::int32_t>(position) : chosen[c];
          }
        }
      }
    });
  });
}

void first_position(ConstTensorView row_of, TensorView source) {
  const RowGroups groups =
      dispatch_rows(row_of, [&](auto rows) { return group_rows(rows, source.rows()); });
  auto* const first = source.data<std::int32_t>();
  parallel_for(source.rows(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto members = groups.of(row);
      first[row] = members.empty() ? -1 : static_cast<std::int32_t>(members.front());
    }
  });
}

void mean_gradient(ConstTensorView grad_output, ConstTensorView row_of, TensorView grad_features) {
  const std::int64_t channels = grad_output.extent(1);
  dispatch_rows(row_of, [&](auto rows) {
    std::vector<std::int64_t> count(static_cast<std::size_t>(grad_output.rows()), 0);
    for (const auto row : rows) {
      if (row >= 0) ++count[static_cast<std::size_t>(row)];
    }
    dispatch_floating(grad_output.dtype(), "reduce_rows_gradient", [&]<class T>(T) {
      const T* const grad = grad_output.data<T>();
      T* const out = grad_features.data<T>();
      parallel_for(row_of.rows(), row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) {
          T* const to = out + p * channels;
          const auto row = static_cast<std::int64_t>(rows[static_cast<std::size_t>(p)]);
          if (row < 0) {
            std::fill_n(to, channels, T{});
            continue;
          }
          const auto divisor = static_cast<compute_t<T>>(count[static_cast<std::size_t>(row)]);
          const auto divide = [&](auto* result, const auto* x, std::int64_t n) {
            PUMICE_INDEPENDENT
            for (std::int64_t c = 0; c < n; ++c)
              result[c] = x[c] / divisor;
          };
          for_pieces(to, channels, divide, grad + row * channels);
        }
      });
    });
  });
}

void chosen_gradient(ConstTensorView grad_output, ConstTensorView row_of, ConstTensorView source,
                     TensorView grad_features) {
  const std::int64_t channels = grad_output.extent(1);
  const auto* const chosen = source.data<std::int32_t>();
  const bool per_channel = source.rank() == 2;
  dispatch_rows(row_of, [&](auto rows) {
    dispatch_floating(grad_output.dtype(), "reduce_rows_gradient", [&]<class T>(T) {
      const T* const grad = grad_output.data<T>();
      T* const out = grad_features.data<T>();
      parallel_for(row_of.rows(), row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) {
          T* const to = out + p * channels;
          const auto row = static_cast<std::int64_t>(rows[static_cast<std::size_t>(p)]);
          const auto self = static_cast<std::int32_t>(p);
          if (row < 0 || (!per_channel && chosen[row] != self)) {
            std::fill_n(to, channels, T{});
          } else if (!per_channel) {
            std::copy_n(grad + row * channels, channels, to);
          } else {
            for (std::int64_t c = 0; c < channels; ++c) {
              to[c] = chosen[row * channels + c] == self ? grad[row * channels + c] : T{};
            }
          }
        }
      });
    });
  });
}

}   // namespace pumice::cpu
