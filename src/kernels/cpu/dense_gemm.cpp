// Dense products through OpenBLAS, built serial: our own threads call it side by side.
#include <pumice/kernels/dense_gemm.hpp>

#include <algorithm>
#include <limits>

#include <cblas.h>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

// Sizes of a BLAS are 32-bit integers, ours are not: rows are multiplied in pieces of at most this.
constexpr std::int64_t kMostRows = std::int64_t{1} << 20;

void check(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda, std::int64_t ldb,
           std::int64_t ldc) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  PUMICE_ENSURES(m >= 0 && n >= 0 && k >= 0, "dense_gemm of ", m, " x ", n, " x ", k);
  PUMICE_ENSURES(lda >= k && ldb >= n && ldc >= n, "dense_gemm with rows of ", lda, ", ", ldb, ", ",
                 ldc, " elements for ", m, " x ", n, " x ", k);
  PUMICE_ENSURES(std::max({n, k, lda, ldb, ldc}) <= kMost, "dense_gemm of ", m, " x ", n, " x ", k,
                 ": rows longer than 2^31 - 1 elements");
}

template <class T, class Gemm>
void in_pieces(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
               const T* b, std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate, Gemm gemm) {
  check(m, n, k, lda, ldb, ldc);
  if (m == 0 || n == 0) return;
  const auto size = [](std::int64_t value) { return static_cast<int>(value); };
  const auto pitch = [](std::int64_t value) { return std::max(1, static_cast<int>(value)); };
  for (std::int64_t row = 0; row < m; row += kMostRows) {
    gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size(std::min(kMostRows, m - row)), size(n),
         size(k), T{1}, a + row * lda, pitch(lda), b, pitch(ldb), accumulate ? T{1} : T{0},
         c + row * ldc, pitch(ldc));
  }
}

}  // namespace

void dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate) {
  in_pieces(m, n, k, a, lda, b, ldb, c, ldc, accumulate, cblas_sgemm);
}

void dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda,
                const double* b, std::int64_t ldb, double* c, std::int64_t ldc, bool accumulate) {
  in_pieces(m, n, k, a, lda, b, ldb, c, ldc, accumulate, cblas_dgemm);
}

}  // namespace pumice
