// Tile kernels on a GPU, every kind of them, against float64 sums on the host; maps are built on
// the host too. Outputs are poisoned first, counts lie in device memory below their capacities, and
// a second run must give the same bits where order is fixed.
// Covers tile_launch and gradient_launch of src/kernels/cuda.
#include <gtest/gtest.h>

#include <pumice/formats/relation_tiles.hpp>

#include "formats/synthetic_map.hpp"
#include "kernels/cuda_gradient_problem.hpp"
#include "kernels/cuda_tile_problem.hpp"
#include "plan/cuda_architecture.hpp"
#include "plan/space/tile_table.hpp"
#include "support/gpu.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

ElementType stored(ElementType operand) {
  return operand == ElementType::tf32 ? ElementType::f32 : operand;
}

const SyntheticMap& cloud() {
  static const SyntheticMap map = synthetic_map(27, 20011, 20033, 0.6, false, 1);
  return map;
}

struct Layer {
  ElementType operand;
  int in, out, groups;
};

std::string name_of(const Layer& layer) {
  const char* types[] = {"f32", "tf32", "f16", "bf16"};
  std::string name = std::string(types[static_cast<int>(layer.operand)]) + "_" +
                     std::to_string(layer.in) + "_" + std::to_string(layer.out);
  return layer.groups == 1 ? name : name + "_g" + std::to_string(layer.groups);
}

class TileKernelsGpu : public ::testing::TestWithParam<Layer> {};

cuda::TileProblem described(const Layer& layer, Write write) {
  return {.operand = layer.operand,
          .output = stored(layer.operand),
          .write = write,
          .in_channels = layer.in / layer.groups,
          .out_channels = layer.out / layer.groups,
          .groups = layer.groups,
          .rows = cloud().out_rows,
          .architecture = cuda::architecture_bit(kGpu)};
}

TEST_P(TileKernelsGpu, convolve_with_every_candidate) {
  PUMICE_NEEDS_GPU();
  const Layer layer = GetParam();
  const Stream stream(kGpu);
  CudaTileProblem problem(cloud().view(), layer.operand, layer.in, layer.out, layer.groups, stream);
  for (const TileSpec& spec : cuda::tile_candidates(described(layer, Write::store))) {
    auto run = problem.prepare(spec);
    EXPECT_EQ(problem.check(run), "") << cuda::tile_name(spec);
  }
}

TEST_P(TileKernelsGpu, split_offsets_add_up) {
  PUMICE_NEEDS_GPU();
  const Layer layer = GetParam();
  const Stream stream(kGpu);
  CudaTileProblem problem(cloud().view(), layer.operand, layer.in, layer.out, layer.groups, stream);
  for (const Write write : {Write::add, Write::slots}) {
    auto run = problem.prepare(cuda::tile_candidates(described(layer, write)).front(), 3);
    EXPECT_EQ(problem.check(run), "") << cuda::tile_name(run.spec);
  }
}

TEST_P(TileKernelsGpu, weight_gradient_with_every_candidate) {
  PUMICE_NEEDS_GPU();
  const Layer layer = GetParam();
  const Stream stream(kGpu);
  CudaGradientProblem problem(cloud().view(), layer.operand, layer.in, layer.out, layer.groups,
                              stream);
  for (const Write write : {Write::add, Write::slots}) {
    for (const GradientSpec& spec : cuda::gradient_candidates({.operand = layer.operand,
                                    .write = write,
                                    .in_channels = layer.in / layer.groups,
                                    .out_channels = layer.out / layer.groups,
                                    .groups = layer.groups,
                                    .architecture = cuda::architecture_bit(kGpu)})) {
      auto run = problem.prepare(spec);
      EXPECT_EQ(problem.check(run), "") << cuda::gradient_name(spec);
    }
  }
}

constexpr Layer kLayers[] = {{ElementType::f16, 4, 32, 1},     {ElementType::f16, 5, 16, 1},
                             {ElementType::f16, 64, 64, 1},    {ElementType::f16, 48, 40, 1},
                             {ElementType::bf16, 3, 20, 1},    {ElementType::bf16, 16, 16, 1},
                             {ElementType::bf16, 32, 32, 1},   {ElementType::bf16, 96, 96, 1},
                             {ElementType::bf16, 128, 96, 1},  {ElementType::bf16, 128, 128, 1},
                             {ElementType::bf16, 384, 256, 1}, {ElementType::bf16, 100, 36, 1},
                             {ElementType::bf16, 37, 53, 1},   {ElementType::bf16, 96, 128, 2},
                             {ElementType::tf32, 3, 5, 1},     {ElementType::tf32, 32, 64, 1},
                             {ElementType::tf32, 96, 96, 1},   {ElementType::tf32, 128, 256, 1},
                             {ElementType::f32, 3, 20, 1},     {ElementType::f32, 32, 32, 1},
                             {ElementType::f32, 96, 64, 1},    {ElementType::f32, 64, 128, 1}};

INSTANTIATE_TEST_SUITE_P(Layers, TileKernelsGpu, ::testing::ValuesIn(kLayers),
                         [](const auto& param) { return name_of(param.param); });

/// Sizes at which tiles, blocks and capacities have their edges.
TEST(TileSizesGpu, any_number_of_rows) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {1, 31, 33, 64, 65, 127, 257, 65537}) {
    const SyntheticMap map = synthetic_map(27, rows, rows, 0.4, true, 5);
    for (const int channels : {16, 64}) {
      CudaTileProblem problem(map.view(), ElementType::f16, channels, channels, 1, stream);
      for (const TileSpec& spec : cuda::tile_candidates({.in_channels = channels,
                                  .out_channels = channels,
                                  .rows = rows,
                                  .architecture = cuda::architecture_bit(kGpu)})) {
        auto run = problem.prepare(spec);
        EXPECT_EQ(problem.check(run), "") << rows << " rows, " << cuda::tile_name(spec);
      }
    }
  }
}

TEST(TileSizesGpu, any_kernel_volume) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t offsets : {1, 2, 8, 125, 343}) {
    const SyntheticMap map = synthetic_map(offsets, 5000, 4000, 0.3, false, 6);
    CudaTileProblem problem(map.view(), ElementType::bf16, 64, 64, 1, stream);
    auto run = problem.prepare(cuda::choose_tile({.operand = ElementType::bf16,
                                                  .output = ElementType::bf16,
                                                  .in_channels = 64,
                                                  .out_channels = 64,
                                                  .rows = 4000,
                                                  .architecture = cuda::architecture_bit(kGpu)}));
    EXPECT_EQ(problem.check(run), "") << offsets << " offsets";
    CudaGradientProblem gradient(map.view(), ElementType::bf16, 64, 64, 1, stream);
    auto gradient_run =
        gradient.prepare(cuda::choose_gradient({.operand = ElementType::bf16,
                                                .in_channels = 64,
                                                .out_channels = 64,
                                                .rows = 4000,
                                                .architecture = cuda::architecture_bit(kGpu)})
                             .spec);
    EXPECT_EQ(gradient.check(gradient_run), "") << offsets << " offsets";
  }
}

}   // namespace
}   // namespace pumice
