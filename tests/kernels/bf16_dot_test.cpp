// Products of bf16 by the processor's own instruction, where it has one.
#include <gtest/gtest.h>
#include <pumice/kernels/tile_mma.hpp>

#include "kernels/cpu/micro_kernels.hpp"
#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

TEST(Bf16Dot, weights_are_kept_as_pairs_where_the_processor_multiplies_them) {
  const Tensor weight = random_tensor(Shape{3, 5, 7}, DType::bf16, 1);
  const PackedWeight packed(weight, 1, false);
  EXPECT_EQ(packed.bf16_pairs(), multiplies_bf16());
  EXPECT_FALSE(PackedWeight(weight.to(DType::f32), 1, false).bf16_pairs());
  EXPECT_FALSE(PackedWeight(random_tensor(Shape{3, 1, 7}, DType::bf16, 1), 7, false).bf16_pairs());
}

TEST(Bf16Dot, every_register_tile_adds_the_products_of_pairs) {
  const cpu::MicroKernels* kernels = cpu::bf16_dot_kernels();
  if (kernels == nullptr) GTEST_SKIP() << "this processor has no instruction for bf16 products";
  constexpr std::int64_t kChannels = 38;
  const std::int64_t panel = kernels->panel();
  for (std::int64_t rows = 1; rows <= cpu::kGroupRows; ++rows) {
    for (int width = 0; 1 << width <= kernels->widest[rows - 1]; ++width) {
      SCOPED_TRACE(detail::concatenate(rows, " rows, ", 1 << width, " vectors"));
      const std::int64_t columns = (std::int64_t{1} << width) * kernels->lanes;
      const std::int64_t panels = (columns + panel - 1) / panel;
      const Tensor x = random_tensor(Shape{rows, kChannels}, DType::bf16, 1);
      const Tensor w = random_tensor(Shape{panels, kChannels / 2, panel, 2}, DType::bf16, 2);
      Tensor sums = random_tensor(Shape{rows, columns}, DType::f32, 3);
      const std::vector<double> a = doubles(x), b = doubles(w), before = doubles(sums);
      Expected expected(before.size());
      const void* input[cpu::kGroupRows];
      void* to[cpu::kGroupRows];
      for (std::int64_t r = 0; r < rows; ++r) {
        input[r] = x.data<BFloat16>() + r * kChannels;
        to[r] = sums.data<float>() + r * columns;
        for (std::int64_t j = 0; j < columns; ++j) {
          const auto at = static_cast<std::size_t>(r * columns + j);
          expected.add(at, before[at]);
          for (std::int64_t c = 0; c < kChannels; ++c) {
            const std::int64_t from =
                ((j / panel * (kChannels / 2) + c / 2) * panel + j % panel) * 2 + c % 2;
            expected.add(at, a[static_cast<std::size_t>(r * kChannels + c)] *
                                 b[static_cast<std::size_t>(from)]);
          }
        }
      }
      kernels->multiply[rows - 1][width](input, 0, to, 0, w.raw(), kChannels * panel, kChannels);
      // Products and sums are rounded apart: two roundings a term.
      expect_close(sums, expected, kChannels + 4);
    }
  }
}

}  // namespace
}  // namespace pumice
