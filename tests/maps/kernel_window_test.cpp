// Offsets, symmetry, grid arithmetic and checks of kernel windows.
#include <pumice/maps/kernel_window.hpp>

#include <gtest/gtest.h>

#include "reference/brute_force_map.hpp"

namespace pumice {
namespace {

std::vector<std::vector<std::int64_t>> plain(const std::vector<Axes>& offsets, int dimension) {
  std::vector<std::vector<std::int64_t>> result;
  for (const Axes& offset : offsets) {
    result.emplace_back(offset.begin(), offset.begin() + dimension);
  }
  return result;
}

std::string message_of(const KernelWindow& window) {
  try {
    validate(window);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(KernelWindow, ListsAHypercubeWithItsLastAxisFastest) {
  KernelWindow window{.dimension = 2, .size = {2, 3, 9, 9}};
  EXPECT_EQ(plain(window.offsets(), 2), (std::vector<std::vector<std::int64_t>>{
                                            {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
  EXPECT_EQ(window.volume(), 6);
  for (int dimension = 1; dimension <= 4; ++dimension) {
    window = {.dimension = dimension, .size = {3, 1, 4, 2}};
    const auto expected =
        brute_force::box_offsets({window.size.begin(), window.size.begin() + dimension}, false);
    EXPECT_EQ(plain(window.offsets(), dimension), expected);
    EXPECT_EQ(window.volume(), static_cast<std::int64_t>(expected.size()));
  }
}

TEST(KernelWindow, ListsAHypercrossInTheOrderOfItsHypercube) {
  for (int dimension = 1; dimension <= 4; ++dimension) {
    const KernelWindow window{
        .dimension = dimension, .shape = KernelShape::hypercross, .size = {3, 5, 1, 3}};
    const auto expected =
        brute_force::box_offsets({window.size.begin(), window.size.begin() + dimension}, true);
    EXPECT_EQ(plain(window.offsets(), dimension), expected);
    EXPECT_EQ(window.volume(), static_cast<std::int64_t>(expected.size()));
  }
}

TEST(KernelWindow, IsSymmetricWhenItsOffsetsMirrorEachOther) {
  EXPECT_TRUE(submanifold_window(3, {3, 5, 1}, {1, 2, 3}).symmetric());
  EXPECT_FALSE(submanifold_window(3, {3, 4, 1}, {1, 1, 1}).symmetric());
  KernelWindow window = submanifold_window(3, {3, 3, 3}, {1, 1, 1});
  window.shape = KernelShape::hypercross;
  EXPECT_TRUE(window.symmetric());
  window.padding[2] = 0;
  EXPECT_FALSE(window.symmetric());
  window.padding[2] = 1;
  window.stride[0] = 2;
  EXPECT_FALSE(window.symmetric());
  KernelWindow custom{.dimension = 2, .shape = KernelShape::custom};
  custom.custom_offsets = {{-1, 4}, {0, 0}, {1, -4}};
  EXPECT_TRUE(custom.symmetric());
  custom.custom_offsets = {{-1, 4}, {1, -4}, {0, 0}};
  EXPECT_FALSE(custom.symmetric());
}

TEST(SubmanifoldWindow, CentresOddAxesAndLeavesEvenOnes) {
  const KernelWindow window = submanifold_window(4, {3, 4, 1, 5}, {1, 2, 3, 2});
  EXPECT_EQ(window.padding, (Axes{1, 0, 0, 4}));
  EXPECT_EQ(window.stride, (Axes{1, 1, 1, 1}));
}

TEST(KernelWindow, ShapesFollowTheArithmeticOfDenseConvolution) {
  const KernelWindow window{
      .dimension = 2, .size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .dilation = {1, 4}};
  const Axes out = strided_shape({41, 20}, window);
  EXPECT_EQ(out[0], 21);
  EXPECT_EQ(out[1], 6);
  const Axes back = transposed_shape({21, 6}, window);
  EXPECT_EQ(back[0], 41);
  EXPECT_EQ(back[1], 20);
  KernelWindow longer = window;
  longer.output_padding = {1, 2};
  const Axes padded = transposed_shape({21, 6}, longer);
  EXPECT_EQ(padded[0], 42);
  EXPECT_EQ(padded[1], 22);
  EXPECT_EQ(strided_shape({41, 20}, longer), out);
}

TEST(KernelWindow, ListedOffsetsKeepTheGrid) {
  const KernelWindow window{.dimension = 1,
                            .shape = KernelShape::custom,
                            .stride = {2},
                            .padding = {7},
                            .custom_offsets = {{-3}, {4}}};
  EXPECT_EQ(strided_shape({9}, window)[0], 5);
  EXPECT_EQ(transposed_shape({5}, window)[0], 10);
}

TEST(KernelWindow, DescribesItself) {
  EXPECT_EQ(to_string(submanifold_window(2, {3, 1}, {2, 1})),
            "kernel 3x1 stride 1x1 padding 2x0 dilation 2x1");
  EXPECT_EQ(to_string({.dimension = 1, .shape = KernelShape::hypercross}),
            "cross 3 stride 1 padding 0 dilation 1");
  EXPECT_EQ(to_string({.dimension = 1, .shape = KernelShape::custom, .custom_offsets = {{2}, {3}}}),
            "kernel of 2 listed offsets stride 1 padding 0 dilation 1");
  EXPECT_EQ(to_string({.dimension = 1, .output_padding = {2}}),
            "kernel 3 stride 1 padding 0 dilation 1 output padding 2");
}

TEST(KernelWindow, ErrorsNameTheArgument) {
  EXPECT_EQ(message_of({.dimension = 5}), "kernel dimension = 5: must be 1 to 4");
  EXPECT_EQ(message_of({.size = {3, 0, 3}}), "kernel size[1] = 0: must be at least 1");
  EXPECT_EQ(message_of({.stride = {1, 1, -2}}), "stride[2] = -2: must be at least 1");
  EXPECT_EQ(message_of({.output_padding = {0, -1}}), "output_padding[1] = -1: must be at least 0");
  EXPECT_EQ(message_of({.dilation = {0, 1, 1}}), "dilation[0] = 0: must be at least 1");
  EXPECT_EQ(message_of({.shape = KernelShape::hypercross, .size = {3, 3, 4}}),
            "kernel size[2] = 4: a hypercross has a centre, so its sizes are odd");
  EXPECT_EQ(
      message_of({.size = {1024, 1024, 2}}),
      "kernel size 1024x1024x2 has more than 1048576 offsets; use a smaller one, or dilation");
  EXPECT_EQ(message_of({.size = {2147483647, 2147483647, 2147483647}}),
            "kernel size 2147483647x2147483647x2147483647 has more than 1048576 offsets; use a "
            "smaller one, or dilation");
  EXPECT_EQ(message_of({.dimension = 1, .size = {3}, .dilation = {1 << 30}}),
            "dilation[0] = 1073741824: offset 2 would lead 2147483648 cells away; the most is "
            "2147483647");
  EXPECT_EQ(message_of({.shape = KernelShape::custom}),
            "custom_offsets is empty; list at least one offset");
  EXPECT_EQ(message_of({.dimension = 2,
                        .shape = KernelShape::custom,
                        .custom_offsets = {{1, 2, 0}, {1, 3, 0}, {1, 2, 5}}}),
            "custom_offsets lists (1x2) twice; each offset has one weight");
  EXPECT_EQ(message_of({.size = {3, 3, 3}, .stride = {2, 2, 2}, .padding = {1, 1, 1}}), "no error");
}

}   // namespace
}   // namespace pumice
