// Copying rows together, and adding rows to where they belong.
#include <pumice/kernels/gather_gemm_scatter.hpp>

#include <algorithm>

#include <pumice/core/parallel.hpp>

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kGatherGrain = 512;     // rows: tens of microseconds
constexpr std::int64_t kScatterColumns = 32;   // two cache lines of floats a row and thread

DType compute_type(DType storage) {
  return storage == DType::f64 ? DType::f64 : DType::f32;
}

/// A pass over the numbers alone, which are far fewer than what is copied by them.
void check_rows(std::span<const std::int32_t> rows, std::int64_t limit, const char* op) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    PUMICE_EXPECTS(rows[i] >= -1 && rows[i] < limit, op, ": rows[", i, "] = ", rows[i],
                   " is not a row; rows are 0 to ", limit - 1, ", or -1 for none");
  }
}

}   // namespace

void gather_rows(ConstTensorView input, std::span<const std::int32_t> rows, TensorView out) {
  const std::int64_t channels = input.row_elements();
  const auto count = static_cast<std::int64_t>(rows.size());
  PUMICE_ENSURES(out.rows() == count && out.row_elements() == channels &&
                     out.dtype() == compute_type(input.dtype()),
                 "gather_rows into ", to_string(out.shape()));
  const auto& kernels = cpu::micro_kernels(input.dtype());
  check_rows(rows, input.rows(), "gather_rows");
  const auto* from = static_cast<const std::byte*>(input.raw());
  const std::int64_t pitch = channels * static_cast<std::int64_t>(size_of(input.dtype()));
  dispatch_floating(out.dtype(), "gather_rows", [&](auto zero) {
    using T = decltype(zero);
    T* to = out.data<T>();
    parallel_for(count, kGatherGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        if (row < 0) {
          std::fill_n(to + i * channels, channels, zero);
        } else {
          kernels.widen(from + row * pitch, to + i * channels, channels);
        }
      }
    });
  });
}

void scatter_add_rows(ConstTensorView product, std::span<const std::int32_t> rows,
                      TensorView sums) {
  const std::int64_t channels = product.row_elements();
  const auto count = static_cast<std::int64_t>(rows.size());
  PUMICE_ENSURES(
      product.rows() == count && sums.row_elements() == channels && sums.dtype() == product.dtype(),
      "scatter_add_rows of ", to_string(product.shape()), " into ", to_string(sums.shape()));
  check_rows(rows, sums.rows(), "scatter_add_rows");
  PUMICE_ENSURES(sums.dtype() == compute_type(sums.dtype()), "sums in ", name_of(sums.dtype()));
  dispatch_floating(sums.dtype(), "scatter_add_rows", [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, compute_t<T>>) {
      const T* from = product.data<T>();
      T* to = sums.data<T>();
      // Threads share columns, not rows: a row may repeat, and its additions keep their order.
      parallel_for(channels, kScatterColumns, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t row = rows[static_cast<std::size_t>(i)];
          if (row < 0) continue;
          for (std::int64_t c = begin; c < end; ++c)
            to[row * channels + c] += from[i * channels + c];
        }
      });
    }
  });
}

}   // namespace pumice
