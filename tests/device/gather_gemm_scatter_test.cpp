// Gather, dense product, scatter-add on the host, with a plain loop as the library of products,
// against float64 sums; the sequence that a device executes.
// Covers gather_gemm_scatter of src/kernels/cuda.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include "kernels/cuda/gather_gemm_scatter.hpp"

#include <gtest/gtest.h>

#include <pumice/skeleton/finish_pairs.h>
#include <pumice/skeleton/finish_partial.h>
#include <pumice/skeleton/gather_scatter.h>

#include "device/spec_runner.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "kernels/storage_type.hpp"

namespace pumice::test {
namespace {

float value_at(ElementType type, const void* data, std::int64_t element) {
  float value[1];
  switch (type) {
    case ElementType::f16: load_chunk<ElementType::f16, 2>(data, element, value, 1); break;
    case ElementType::bf16: load_chunk<ElementType::bf16, 2>(data, element, value, 1); break;
    default: load_chunk<ElementType::f32, 4>(data, element, value, 1);
  }
  return value[0];
}

class LoopProducts final : public cuda::MatrixProducts {
 public:
  void multiply(jit::KernelRunner&, std::span<const cuda::MatrixProduct> products) override {
    for (const cuda::MatrixProduct& product : products)
      multiply(product);
    ++calls;
  }
  int calls = 0;

 private:
  static void multiply(const cuda::MatrixProduct& p) {
    const cuda::MatrixShape& m = p.shape;
    const std::int64_t in = m.groups * m.in_channels, out = m.groups * m.out_channels;
    for (std::int64_t row = 0; row < p.rows; ++row) {
      for (std::int64_t n = 0; n < out; ++n) {
        const std::int64_t group = n / m.out_channels;
        float sum = 0;
        for (std::int64_t c = 0; c < m.in_channels; ++c) {
          const std::int64_t column = group * m.in_channels + c;
          const std::int64_t weight =
              m.transpose_weight ? n % m.out_channels * in + column : c * out + n;
          sum += value_at(m.operand, p.input, row * in + column) *
                 value_at(m.operand, p.weight, weight);
        }
        p.output[row * out + n] = sum;
      }
    }
  }
};

void knows_all(SpecRunner& runner) {
  runner.knows("gather_scatter", cuda::kGatherRowsKernel, gather_rows);
  runner.knows("gather_scatter", cuda::kScatterAddKernel, scatter_add_rows);
  runner.knows("finish_partial_f32", cuda::kFinishKernel, finish_partial<ElementType::f32>);
  runner.knows("finish_partial_f16", cuda::kFinishKernel, finish_partial<ElementType::f16>);
  runner.knows("finish_partial_bf16", cuda::kFinishKernel, finish_partial<ElementType::bf16>);
}

struct Layer {
  ElementType operand;
  std::int32_t in, out, groups;   // of all groups
  bool transpose = false;
};

Tensor convolve_gathered(const KernelMapView& map, const Layer& layer, const Tensor& input,
                         const Tensor& weight, int* calls = nullptr) {
  SpecRunner runner;
  knows_all(runner);
  LoopProducts products;
  const DType type = storage_type(layer.operand);
  Tensor output = garbage({map.out_rows, layer.out}, type);
  cuda::gather_gemm_scatter(
      runner, products,
      {.pairs = pair_list(map),
       .offset_begin = map.offset_begin,
       .shape = {.in_channels = layer.in / layer.groups,
                 .out_channels = layer.out / layer.groups,
                 .groups = layer.groups,
                 .operand = layer.operand,
                 .transpose_weight = layer.transpose},
       .input = input.raw(),
       .weight = weight.raw(),
       .target = {.output = output.raw(),
                  .type = layer.operand == ElementType::tf32 ? ElementType::f32 : layer.operand,
                  .out_rows = {nullptr, map.out_rows},
                  .channels = layer.out}});
  if (calls != nullptr) *calls = products.calls;
  return output;
}

void expect_convolves(const KernelMapView& map, const Layer& layer) {
  SCOPED_TRACE(::testing::Message()
               << layer.in << " to " << layer.out << " in " << layer.groups << ", type "
               << static_cast<int>(layer.operand) << (layer.transpose ? ", transposed" : ""));
  const DType type = storage_type(layer.operand);
  const Tensor input = random_tensor({map.in_rows, layer.in}, type, 1);
  const Shape shape = layer.transpose ? Shape{map.offsets, layer.out / layer.groups, layer.in}
                                      : Shape{map.offsets, layer.in / layer.groups, layer.out};
  const Tensor weight = random_tensor(shape, type, 2);
  const Expected expected =
      convolve(map, input, weight, {layer.in, layer.out, layer.groups}, layer.transpose);
  const Tensor output = convolve_gathered(map, layer, input, weight);
  expect_close(output, expected, 32);
  EXPECT_TRUE(same_bits(output, convolve_gathered(map, layer, input, weight)));
}

TEST(GatherGemmScatter, SumsOverPairsInEveryType) {
  const SyntheticMap map = synthetic_map(27, 150, 170, 0.6, false, 1);
  expect_convolves(map.view(), {ElementType::f32, 16, 24, 1});
  expect_convolves(map.view(), {ElementType::tf32, 16, 24, 1});
  expect_convolves(map.view(), {ElementType::f16, 16, 24, 1});
  expect_convolves(map.view(), {ElementType::bf16, 16, 24, 1, true});
}

TEST(GatherGemmScatter, TakesAnyChannelsAndGroups) {
  const SyntheticMap map = synthetic_map(27, 150, 170, 0.6, false, 2);
  for (const bool transpose : {false, true}) {
    expect_convolves(map.view(), {ElementType::f16, 3, 5, 1, transpose});
    expect_convolves(map.view(), {ElementType::bf16, 5, 4, 1, transpose});
    expect_convolves(map.view(), {ElementType::f32, 12, 20, 4, transpose});
    expect_convolves(map.view(), {ElementType::f16, 9, 9, 9, transpose});   // depthwise
  }
}

TEST(GatherGemmScatter, TakesAnyNumberOfRowsAndOffsets) {
  for (const std::int64_t rows : {0, 1, 31, 33}) {
    const SyntheticMap map = synthetic_map(8, rows + 3, rows, 0.7, true, 3);
    expect_convolves(map.view(), {ElementType::f16, 8, 8, 1});
    expect_convolves(map.view(), {ElementType::f16, 3, 3, 1});   // less than an access in all
  }
  const SyntheticMap wide = synthetic_map(343, 60, 60, 0.1, true, 4);
  expect_convolves(wide.view(), {ElementType::f32, 4, 4, 1});
}

/// The largest offset says how many pairs are gathered at a time.
TEST(GatherGemmScatter, GathersSmallOffsetsTogether) {
  SyntheticMap map = synthetic_map(0, 40000, 40000, 0, true, 5);
  for (std::int32_t k = 0; k < 9; ++k) {
    const std::int32_t pairs = k == 4 ? 40000 : 10000;
    for (std::int32_t i = 0; i < pairs; ++i) {
      map.in.push_back((i * 7 + k) % 40000);
      map.out.push_back(i);
    }
    map.offset_begin.push_back(static_cast<std::int64_t>(map.in.size()));
  }
  map.offsets = 9;
  const Tensor input = random_tensor({40000, 2}, DType::f32, 1);
  const Tensor weight = random_tensor({9, 2, 4}, DType::f32, 2);
  int calls = 0;
  const Tensor output =
      convolve_gathered(map.view(), {ElementType::f32, 2, 4, 1}, input, weight, &calls);
  EXPECT_EQ(calls, 3);
  expect_close(output, convolve(map.view(), input, weight, {2, 4, 1}), 32);
}

TEST(GatherGemmScatter, MultipliesRowsThatMeetThemselves) {
  SpecRunner runner;
  knows_all(runner);
  LoopProducts products;
  const Tensor input = random_tensor({33, 6}, DType::f16, 1);
  const Tensor weight = random_tensor({1, 6, 4}, DType::f16, 2);
  const Tensor shift = random_tensor({4}, DType::f32, 3);
  Tensor output = garbage({33, 4}, DType::f16);
  cuda::multiply_rows(runner, products,
                      {.rows = 33,
                       .shape = {.in_channels = 6, .out_channels = 4, .operand = ElementType::f16},
                       .input = input.raw(),
                       .weight = weight.raw()},
                      {.output = output.raw(),
                       .type = ElementType::f16,
                       .out_rows = {nullptr, 33},
                       .channels = 4,
                       .epilogue = {.shift = shift.data<float>()}});
  SyntheticMap identity{1, 33, 33, {0, 33}, {}, {}, {}, {}};
  for (std::int32_t i = 0; i < 33; ++i) {
    identity.in.push_back(i);
    identity.out.push_back(i);
  }
  Expected expected = convolve(identity.view(), input, weight, {6, 4, 1});
  const std::vector<double> bias = doubles(shift);
  for (std::size_t i = 0; i < expected.value.size(); ++i)
    expected.add(i, bias[i % 4]);
  expect_close(output, expected, 32);
}

}   // namespace
}   // namespace pumice::test
