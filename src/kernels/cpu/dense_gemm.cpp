// Dense products through Eigen, on the calling thread alone: our own threads call it side by side.
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MPL2_ONLY
#include <pumice/kernels/dense_gemm.hpp>

#include <Eigen/Core>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
              const T* b, std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate) {
  PUMICE_ENSURES(m >= 0 && n >= 0 && k >= 0, "dense_gemm of ", m, " x ", n, " x ", k);
  PUMICE_ENSURES(lda >= k && ldb >= n && ldc >= n, "dense_gemm with rows of ", lda, ", ", ldb, ", ",
                 ldc, " elements for ", m, " x ", n, " x ", k);
  using Pitch = Eigen::OuterStride<>;
  const Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Pitch> left(a, m, k, Pitch(lda));
  const Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Pitch> right(b, k, n, Pitch(ldb));
  Eigen::Map<RowMajor<T>, Eigen::Unaligned, Pitch> product(c, m, n, Pitch(ldc));
  if (accumulate) {
    product.noalias() += left * right;
  } else {
    product.noalias() = left * right;
  }
}

}   // namespace

void dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate) {
  multiply(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

void dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda,
                const double* b, std::int64_t ldb, double* c, std::int64_t ldc, bool accumulate) {
  multiply(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

}   // namespace pumice
