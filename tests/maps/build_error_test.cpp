// What the user is told when a kernel map cannot be built, word for word.
// Covers build.
#include <limits>

#include <gtest/gtest.h>

#include "maps/map_problem.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

TEST(MapErrors, NameTheArgument) {
  const auto flat = make_set({{0, 1, 2}}, 2);
  const KernelWindow window;
  EXPECT_EQ(message_of([&] { submanifold_map(flat, window); }),
            "set has dimension 2, the kernel 3; make them equal");
  EXPECT_EQ(message_of([&] { submanifold_map(nullptr, window); }),
            "set is null; give a coordinate set");
  EXPECT_EQ(message_of([&] { transposed_map(make_set({}, 3), flat, window); }),
            "fine has dimension 2, the kernel 3; make them equal");
  EXPECT_EQ(message_of([&] { map_between(flat, make_set({}, 3), window); }),
            "in has dimension 2, the kernel 3; make them equal");
}

TEST(MapErrors, SubmanifoldWindowsDoNotStride) {
  KernelWindow window;
  window.stride = {1, 2, 1, 1};
  EXPECT_EQ(message_of([&] { submanifold_map(make_set({}, 3), window); }),
            "stride[1] = 2: the outputs of a submanifold convolution are its inputs, so its "
            "stride is 1; use a strided one");
}

TEST(MapErrors, OutputsMustFitIntoInt32) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int32_t>::max();
  const auto set = make_set({{0, kLast}}, 1);
  const KernelWindow window{.dimension = 1, .padding = {1, 0, 0, 0}};
  EXPECT_EQ(message_of([&] { strided_map(set, window, StridedOutputs::dilating); }),
            "coordinates: outputs on axis 0 would lie from 2147483646 to 2147483648, which int32 "
            "cannot hold; move the input towards 0");
  const KernelWindow up{.dimension = 1, .size = {2, 1, 1, 1}, .stride = {2, 1, 1, 1}};
  EXPECT_EQ(message_of([&] { generative_map(set, up); }),
            "coordinates: outputs on axis 0 would lie from 4294967294 to 4294967295, which int32 "
            "cannot hold; move the input towards 0");
}

TEST(MapErrors, AKernelLargerThanTheGridLeavesNothing) {
  const auto set = make_set({{0, 1, 1, 1}}, 3, {.spatial_shape = Axes{4, 4, 2}});
  KernelWindow window;
  window.stride = {2, 2, 2, 1};
  EXPECT_EQ(message_of([&] { strided_map(set, window, StridedOutputs::dilating); }),
            "spatial_shape[2] = 2 leaves no output for kernel 3x3x3 stride 2x2x2 padding 0x0x0 "
            "dilation 1x1x1; use a smaller kernel or more padding");
}

}   // namespace
}   // namespace pumice::test
