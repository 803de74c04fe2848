// Dense products cut into blocks of rows; each block is one call of the BLAS on one thread, and the
// cut depends on the number of rows alone.
#include "ops/cpu/linear.hpp"

#include <vector>

#include <pumice/kernels/dense_gemm.hpp>

#include "ops/cpu/row_chunks.hpp"

namespace pumice::cpu {
namespace {

// 512 rows amortise the packing of the weight that every BLAS call does: at 96 × 96 it is 2 % of
// it.
constexpr std::int64_t kBlockRows = 512;

/// [rows, columns] from `from`, widened, and transposed if asked.
template <class T>
std::vector<compute_t<T>> wide_matrix(const T* from, std::int64_t rows, std::int64_t columns,
                                      bool transpose) {
  std::vector<compute_t<T>> result(static_cast<std::size_t>(rows * columns));
  if (!transpose) {
    widen_row(from, result.data(), rows * columns);
    return result;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      result[static_cast<std::size_t>(c * rows + r)] = widen(from[r * columns + c]);
    }
  }
  return result;
}

}   // namespace

void linear(ConstTensorView rows, ConstTensorView weight, bool transpose, ConstTensorView bias,
            TensorView output) {
  const std::int64_t k = rows.extent(1);
  const std::int64_t n = output.extent(1);
  if (n == 0) return;
  dispatch_floating(rows.dtype(), "linear", [&]<class T>(T) {
    using C = compute_t<T>;
    const std::vector<C> w =
        wide_matrix(weight.data<T>(), weight.extent(0), weight.extent(1), transpose);
    const C* const b = bias.defined() ? bias.data<C>() : nullptr;
    parallel_for(rows.rows(), kBlockRows, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t m = end - begin;
      std::vector<C> scratch(is_wide<T> ? std::size_t{0} : static_cast<std::size_t>(m * (k + n)));
      const C* const x = widened(rows.data<T>() + begin * k, scratch.data(), m * k);
      C* y = scratch.data() + m * k;
      if constexpr (is_wide<T>) y = output.data<T>() + begin * n;
      for (std::int64_t row = 0; row < m; ++row) {
        if (b == nullptr)
          std::fill_n(y + row * n, n, C{0});
        else
          std::copy_n(b, n, y + row * n);
      }
      if (k > 0) dense_gemm(m, n, k, x, k, w.data(), n, y, n, true);
      if constexpr (!is_wide<T>) narrow_row(y, output.data<T>() + begin * n, m * n);
    });
  });
}

void linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                            TensorView grad_weight) {
  const std::int64_t rows = features.rows();
  const std::int64_t m = features.extent(1);
  const std::int64_t n = grad_output.extent(1);
  if (m == 0 || n == 0) return;
  dispatch_floating(features.dtype(), "linear_weight_gradient", [&]<class T>(T) {
    using C = compute_t<T>;
    // At most 64 partial results, each the sum of blocks that one task adds up in order.
    const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    const std::int64_t blocks_each = std::max<std::int64_t>(1, (blocks + 63) / 64);
    const std::int64_t parts = (blocks + blocks_each - 1) / blocks_each;
    Buffer<C> partial(parts * m * n);
    parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<C> grad_scratch(is_wide<T> ? std::size_t{0}
                                             : static_cast<std::size_t>(kBlockRows * n));
      for (std::int64_t part = first; part < last; ++part) {
        C* const sum = partial.data() + part * m * n;
        const std::int64_t end = std::min(rows, (part + 1) * blocks_each * kBlockRows);
        for (std::int64_t row = part * blocks_each * kBlockRows; row < end; row += kBlockRows) {
          const std::int64_t k = std::min(kBlockRows, end - row);
          const std::vector<C> x = wide_matrix(features.data<T>() + row * m, k, m, true);
          const C* const g = widened(grad_output.data<T>() + row * n, grad_scratch.data(), k * n);
          dense_gemm(m, n, k, x.data(), k, g, n, sum, n, row != part * blocks_each * kBlockRows);
        }
      }
    });
    T* const out = grad_weight.data<T>();
    parallel_for(m * n, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (std::int64_t part = 0; part < parts; ++part) {
          sum += static_cast<double>(partial[part * m * n + i]);
        }
        out[i] = narrow<T>(static_cast<C>(sum));
      }
    });
  });
}

void column_sum(ConstTensorView rows, TensorView sums) {
  const std::int64_t channels = rows.extent(1);
  if (channels == 0) return;
  dispatch_floating(rows.dtype(), "column_sum", [&]<class T>(T) {
    const auto add = [](const auto& to, std::int64_t, const auto* x, std::int64_t n) {
      double* const sum = to[0];
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i)
        sum[i] += static_cast<double>(x[i]);
    };
    const std::vector<double> total =
        column_sums<1>(RowChunks(rows.rows(), channels), channels, add, rows.data<T>());
    for (std::int64_t c = 0; c < channels; ++c) {
      sums.data<compute_t<T>>()[c] = static_cast<compute_t<T>>(total[static_cast<std::size_t>(c)]);
    }
  });
}

}   // namespace pumice::cpu
