// Dense products against float64 loops, from one thread and from several.
#include <pumice/kernels/dense_gemm.hpp>

#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

template <class T>
void expect_right(std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  SCOPED_TRACE(detail::concatenate(m, " x ", n, " x ", k));
  // Rows longer than needed, so that a wrong stride shows.
  const std::int64_t lda = k + 3, ldb = n + 1, ldc = n + 2;
  const Tensor a = random_tensor(Shape{m, lda}, dtype_of<T>, 1);
  const Tensor b = random_tensor(Shape{k, ldb}, dtype_of<T>, 2);
  Tensor c = random_tensor(Shape{m, ldc}, dtype_of<T>, 3);
  const std::vector<double> x = doubles(a), y = doubles(b), before = doubles(c);
  Expected expected(before.size());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      if (accumulate || j >= n) expected.add(at, before[at]);
      for (std::int64_t p = 0; p < k && j < n; ++p) {
        expected.add(at, x[static_cast<std::size_t>(i * lda + p)] *
                             y[static_cast<std::size_t>(p * ldb + j)]);
      }
    }
  }
  dense_gemm(m, n, k, a.data<T>(), lda, b.data<T>(), ldb, c.data<T>(), ldc, accumulate);
  expect_close(c, expected);
}

TEST(DenseGemm, multiplies_every_shape) {
  for (const std::int64_t m : {0, 1, 31, 200}) {
    for (const std::int64_t n : {0, 1, 4, 33, 96}) {
      for (const std::int64_t k : {0, 1, 4, 33, 96}) {
        for (const bool accumulate : {false, true}) {
          expect_right<float>(m, n, k, accumulate);
          expect_right<double>(m, n, k, accumulate);
        }
      }
    }
  }
}

TEST(DenseGemm, may_be_called_from_several_threads_at_once) {
  const WithThreads with(3);
  const Tensor a = random_tensor(Shape{257, 65}, DType::f32, 1);
  const Tensor b = random_tensor(Shape{65, 49}, DType::f32, 2);
  constexpr std::int64_t kCalls = 2000;
  Tensor alone(Shape{257, 49}, DType::f32);
  dense_gemm(257, 49, 65, a.data<float>(), 65, b.data<float>(), 49, alone.data<float>(), 49, false);
  std::vector<char> same(kCalls, 0);
  parallel_for(kCalls, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t call = begin; call < end; ++call) {
      Tensor c(Shape{257, 49}, DType::f32);
      dense_gemm(257, 49, 65, a.data<float>(), 65, b.data<float>(), 49, c.data<float>(), 49, false);
      same[static_cast<std::size_t>(call)] = same_bits(c, alone);
    }
  });
  EXPECT_EQ(std::count(same.begin(), same.end(), 1), kCalls);
}

TEST(DenseGemm, refuses_rows_that_overlap) {
  std::vector<float> a(16), b(16), c(16);
  EXPECT_THROW(dense_gemm(2, 4, 4, a.data(), 3, b.data(), 4, c.data(), 4, false), InternalError);
  EXPECT_THROW(dense_gemm(-1, 4, 4, a.data(), 4, b.data(), 4, c.data(), 4, false), InternalError);
}

}   // namespace
}   // namespace pumice
