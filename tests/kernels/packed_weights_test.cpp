// Weights that are packed together are what each is by itself.
// Covers packed_weights and cuda/packed_tiles.
#include <pumice/kernels/packed_weights.hpp>

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/problem.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

WeightLayout layout_of(std::int32_t in_channels, std::int32_t out_channels, std::int32_t columns) {
  return {.operand = ElementType::f16,
          .offsets = 27,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .columns = columns,
          .depth = 16,
          .swizzle = 32};
}

TEST(PackedTilesGpu, weights_packed_at_once_are_those_packed_one_by_one) {
  PUMICE_NEEDS_GPU();
  const Stream stream(Device{DeviceKind::cuda, 0});
  jit::DeviceRunner runner(stream.view(), default_allocator(stream.view().device));
  constexpr int kWeights = 35;   // more than one launch takes
  std::vector<Tensor> weights;
  std::vector<PackedWeights> first(kWeights), second(kWeights);
  const auto uses_of = [](int i) {
    const std::int32_t in = 8 + i, out = 24 - i % 9;
    std::vector<cuda::PackUse> uses{{layout_of(in, out, 16), {}}};
    if (i % 2 == 1) uses.push_back({layout_of(out, in, 32), {.transpose = true}});
    if (i % 5 == 0) uses.clear();   // which is packed for nobody
    return uses;
  };
  std::vector<ConstTensorView> views;
  for (int i = 0; i < kWeights; ++i) {
    const Tensor here =
        random_tensor(Shape{27, 8 + i, 24 - i % 9}, DType::f32, static_cast<std::uint64_t>(i) + 1);
    weights.push_back(copy_to(stream.view(), here));
    for (const cuda::PackUse& use : uses_of(i))
      first[static_cast<std::size_t>(i)].tiles().get(runner, use.layout, weights.back(), use.order);
  }
  for (const Tensor& weight : weights)
    views.push_back(weight);
  std::vector<PackWeightArguments> jobs;
  for (int i = 0; i < kWeights; ++i) {
    const auto at = static_cast<std::size_t>(i);
    for (const cuda::PackUse& use : uses_of(i)) {
      const auto job = second[at].tiles().make_room(runner, use, views[at]);
      ASSERT_TRUE(job);
      jobs.push_back(*job);
    }
  }
  cuda::launch_packing(runner, jobs);
  const auto bytes_of = [&](PackedWeights& packed, const cuda::PackUse& use, int i) {
    const void* data =
        packed.tiles().get(runner, use.layout, views[static_cast<std::size_t>(i)], use.order);
    return copy_to_host(static_cast<const std::byte*>(data), packed_bytes(use.layout),
                        stream.view());
  };
  for (int i = 0; i < kWeights; ++i) {
    const auto at = static_cast<std::size_t>(i);
    for (const cuda::PackUse& use : uses_of(i)) {
      EXPECT_FALSE(second[at].tiles().make_room(runner, use, views[at]));   // it is there
      EXPECT_EQ(bytes_of(second[at], use, i), bytes_of(first[at], use, i)) << i;
    }
  }
  // A weight of another shape has no such form.
  PackedWeights other;
  EXPECT_FALSE(other.tiles().make_room(runner, {layout_of(9, 23, 16), {}}, views[0]));
  EXPECT_FALSE(
      other.tiles().make_room(runner, {layout_of(8, 24, 16), {.transpose = true}}, views[0]));
}

}   // namespace
}   // namespace pumice::test
