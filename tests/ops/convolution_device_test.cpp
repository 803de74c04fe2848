// Gradients of weights on a CUDA device, and depthwise convolutions in every direction, against
// float64 sums over the pairs of the CPU's map.
// Covers convolution on a device.
#include <gtest/gtest.h>

#include <pumice/ops/convolution.hpp>
#include <pumice/ops/linear.hpp>

#include "ops/device_map_pairs.hpp"
#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

/// Rounding of halves, flushes to the result and slots, beside one a term.
constexpr double kRoundings = 64;

void expect_weight_gradient(const KernelMapView& cpu, const KernelMapView& gpu, DType type,
                            const Channels& channels, StreamView stream) {
  SCOPED_TRACE(std::string(name_of(type)) + " " + std::to_string(channels.in) + " to " +
               std::to_string(channels.out) + " in " + std::to_string(channels.groups));
  const Tensor x = chance_tensor({cpu.in_rows, channels.in}, type, 1);
  const Tensor dy = chance_tensor({cpu.out_rows, channels.out}, type, 2);
  const Expected expected = weight_product(cpu, x, dy, channels);
  const Tensor gpu_x = copy_to(stream, x);
  const Tensor gpu_dy = copy_to(stream, dy);
  ConvolutionOptions options{.groups = channels.groups};
  expect_close(back(convolution_weight_gradient(gpu_x, gpu_dy, gpu, options)), expected,
               kRoundings);
  options.numerics.deterministic = true;
  const Tensor first = back(convolution_weight_gradient(gpu_x, gpu_dy, gpu, options));
  expect_close(first, expected, kRoundings);
  EXPECT_TRUE(same_bits(first, back(convolution_weight_gradient(gpu_x, gpu_dy, gpu, options))));
}

TEST(ConvolutionGradientsGpu, sum_over_the_pairs_of_every_kind_of_map) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 33, 5000}) {
    const MapPair pairs[] = {submanifold_pair(rows, stream), strided_pair(rows, false, stream),
                             strided_pair(rows, true, stream)};
    for (const MapPair& map : pairs) {
      for (const DType type : kDeviceTypes) {
        expect_weight_gradient(map.cpu->view(), map.gpu->view(), type, {16, 32, 1}, stream);
        expect_weight_gradient(transposed(map.cpu->view()), transposed(map.gpu->view()), type,
                               {16, 32, 1}, stream);
      }
    }
  }
}

TEST(ConvolutionGradientsGpu, take_any_channels_and_groups) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(2000, stream);
  for (const DType type : kDeviceTypes) {
    for (const Channels& channels : {Channels{4, 9, 1},
                                     {3, 5, 1},
                                     {1, 1, 1},
                                     {96, 64, 1},
                                     {64, 128, 1},
                                     {160, 96, 1},
                                     {24, 48, 3},
                                     {20, 40, 20},
                                     {32, 32, 32},
                                     {33, 33, 33}}) {
      expect_weight_gradient(map.cpu->view(), map.gpu->view(), type, channels, stream);
    }
  }
}

TEST(DepthwiseConvolutionGpu, gives_outputs_and_input_gradients) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 33, 5000}) {
    const MapPair pairs[] = {submanifold_pair(rows, stream), strided_pair(rows, false, stream)};
    for (const MapPair& map : pairs) {
      for (const std::int64_t c : {12, 33, 64}) {
        for (const DType type : kDeviceTypes) {
          const KernelMapView cpu = map.cpu->view();
          const KernelMapView gpu = map.gpu->view();
          const Channels channels{c, c, c};
          const Tensor x = chance_tensor({cpu.in_rows, c}, type, 1);
          const Tensor dy = chance_tensor({cpu.out_rows, c}, type, 2);
          const Tensor weight = chance_tensor({cpu.offsets, 1, c}, type, 3);
          const Tensor gpu_weight = copy_to(stream, weight);
          expect_close(back(convolution(copy_to(stream, x), gpu_weight, gpu, {.groups = c})),
                       convolve(cpu, x, weight, channels), kRoundings);
          expect_close(
              back(convolution_input_gradient(copy_to(stream, dy), gpu_weight, gpu, {.groups = c})),
              convolve(transposed(cpu), dy, weight, channels, true), kRoundings);
        }
      }
    }
  }
}

TEST(ConvolutionGradientsGpu, refuse_what_lies_elsewhere) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(33, stream);
  const Tensor x = chance_tensor({33, 8}, DType::f32, 1);
  const Tensor gpu_x = copy_to(stream, x);
  expect_sentence([&] { convolution_weight_gradient(gpu_x, x, map.gpu->view()); },
                  {"grad_output is on cpu", "cuda:0"});
  expect_sentence([&] { convolution_weight_gradient(gpu_x, gpu_x, map.cpu->view()); },
                  {"kernel map is on cpu"});
  expect_sentence([&] { convolution_weight_gradient(x, x, map.gpu->view()); },
                  {"kernel map is on cuda:0"});
  const Tensor wide = copy_to(stream, x.to(DType::f64));
  expect_sentence([&] { convolution_weight_gradient(wide, wide, map.gpu->view()); },
                  {"f64", "f32, f16 or bf16"});
}

}   // namespace
}   // namespace pumice
