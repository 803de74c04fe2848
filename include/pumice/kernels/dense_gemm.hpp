// Dense products, through the library that docs/decisions/0003-dense-products.md chose.
#pragma once

#include <cstdint>

namespace pumice {

/// c = a · b, or c += a · b when `accumulate`. Row-major: a [m, k] with rows `lda` elements apart,
/// b [k, n] with `ldb`, c [m, n] with `ldc`. Runs on the calling thread; may be called from
/// several.
void dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate);
void dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda,
                const double* b, std::int64_t ldb, double* c, std::int64_t ldc, bool accumulate);

}   // namespace pumice
