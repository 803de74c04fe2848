// Products of bf16 by the processor's own instructions, where it has them.
// Covers block_product.
#include <gtest/gtest.h>
#include <pumice/kernels/tile_mma.hpp>

#include "kernels/cpu/block_product.hpp"
#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

TEST(Bf16Products, weights_are_kept_as_pairs_where_the_processor_multiplies_them) {
  const Tensor weight = random_tensor(Shape{3, 5, 7}, DType::bf16, 1);
  const WeightPanels packed(weight, 1, false);
  EXPECT_EQ(packed.bf16_pairs(), multiplies_bf16());
  EXPECT_FALSE(WeightPanels(weight.to(DType::f32), 1, false).bf16_pairs());
  EXPECT_FALSE(WeightPanels(random_tensor(Shape{3, 1, 7}, DType::bf16, 1), 7, false).bf16_pairs());
}

TEST(Bf16Products, every_register_tile_of_avx512_adds_the_products_of_pairs) {
  const cpu::MicroKernels* kernels = cpu::bf16_dot_kernels();
  if (kernels == nullptr) GTEST_SKIP() << "this processor has no AVX-512-BF16";
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

TEST(Bf16Products, matrix_tiles_add_the_products_of_any_number_of_rows_and_columns) {
  const cpu::MicroKernels* kernels = cpu::bf16_matrix_kernels();
  if (kernels == nullptr) GTEST_SKIP() << "this processor has no AMX-BF16";
  const std::int64_t panel = kernels->panel();
  for (const std::int64_t channels : {32, 96, 416}) {
    for (const std::int64_t columns : {1, 16, 17, 32, 33, 48, 96}) {
      const std::int64_t panels = (columns + panel - 1) / panel;
      const std::int64_t padded = (columns + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
      for (const std::int64_t rows : {1, 2, 15, 16, 17, 31, 32, 33, 48, 95, 96}) {
        SCOPED_TRACE(detail::concatenate(rows, " rows, ", channels, " -> ", columns));
        const Tensor x = random_tensor(Shape{rows, channels + 5}, DType::bf16, 1);
        const Tensor w = random_tensor(Shape{panels, channels / 2, panel, 2}, DType::bf16, 2);
        Tensor sums = random_tensor(Shape{rows, padded + 3}, DType::f32, 3);
        const std::vector<double> a = doubles(x), b = doubles(w), before = doubles(sums);
        Expected expected(before.size());
        std::vector<const void*> input;
        std::vector<void*> to;
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t from_row = rows - 1 - r;   // rows lie anywhere
          input.push_back(x.data<BFloat16>() + from_row * (channels + 5));
          to.push_back(sums.data<float>() + r * (padded + 3));
          for (std::int64_t j = 0; j < padded + 3; ++j) {
            const auto at = static_cast<std::size_t>(r * (padded + 3) + j);
            expected.add(at, before[at]);
            if (j == 0 || j > padded) continue;   // offsets: one column in, five channels in
            for (std::int64_t c = 0; c < channels; ++c) {
              const std::int64_t column = j - 1;
              const std::int64_t from =
                  ((column / panel * (channels / 2) + c / 2) * panel + column % panel) * 2 + c % 2;
              expected.add(at, a[static_cast<std::size_t>(from_row * (channels + 5) + 5 + c)] *
                                   b[static_cast<std::size_t>(from)]);
            }
          }
        }
        const cpu::Panels weight{static_cast<const std::byte*>(w.raw()), 2, channels, columns};
        cpu::multiply_block(*kernels, {input.data(), to.data(), rows, 5, 1}, weight);
        expect_close(sums, expected, static_cast<double>(channels) + 4);
      }
    }
  }
}

}   // namespace
}   // namespace pumice
