// Every dataflow on a CUDA device, forward and input gradient, against float64 sums over the pairs
// of the CPU's map.
// Covers convolution on a device.
#include <gtest/gtest.h>

#include <pumice/ops/convolution.hpp>

#include "core/cuda/graph.hpp"
#include "kernels/cuda/cublas.hpp"
#include "ops/device_map_pairs.hpp"

namespace pumice {
namespace {

using namespace test;

/// Roundings of the epilogue beside one a term.
constexpr double kRoundings = 64;

struct Way {
  Dataflow dataflow;
  bool deterministic = false;
  bool tf32 = false;
};

std::string name_of(const Way& way) {
  return std::string(pumice::name_of(way.dataflow)) + (way.deterministic ? ", deterministic" : "") +
         (way.tf32 ? ", tf32" : "");
}

/// All that this machine has.
std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const bool tf32 : {false, true}) {
    ways.push_back({Dataflow::implicit_gemm, true, tf32});
    ways.push_back({Dataflow::fetch_on_demand, false, tf32});
    ways.push_back({Dataflow::fetch_on_demand, true, tf32});
    if (cuda::cublas_state().reason.empty())
      ways.push_back({Dataflow::gather_gemm_scatter, true, tf32});
  }
  return ways;
}

struct Operands {
  Operands(const MapPair& map, DType type, const Channels& c, bool view_is_transposed,
           StreamView stream)
      : cpu(view_is_transposed ? transposed(map.cpu->view()) : map.cpu->view()),
        gpu(view_is_transposed ? transposed(map.gpu->view()) : map.gpu->view()),
        channels(c),
        x(chance_tensor({cpu.in_rows, c.in}, type, 1)),
        dy(chance_tensor({cpu.out_rows, c.out}, type, 2)),
        weight(chance_tensor({cpu.offsets, c.in / c.groups, c.out}, type, 3)),
        gpu_x(copy_to(stream, x)),
        gpu_dy(copy_to(stream, dy)),
        gpu_weight(copy_to(stream, weight)),
        forward(convolve(cpu, x, weight, c)),
        backward(convolve(transposed(cpu), dy, weight, {c.out, c.in, c.groups}, true)) {}

  void expect(const Way& way) const {
    SCOPED_TRACE(name_of(way));
    const ConvolutionOptions options{
        .groups = channels.groups,
        .dataflow = way.dataflow,
        .numerics = {.deterministic = way.deterministic, .tf32 = way.tf32}};
    const double roundings = way.tf32 ? kTf32Roundings : kRoundings;
    const Tensor y = back(convolution(gpu_x, gpu_weight, gpu, options));
    expect_close(y, forward, roundings);
    const Tensor dx = back(convolution_input_gradient(gpu_dy, gpu_weight, gpu, options));
    expect_close(dx, backward, roundings);
    if (!way.deterministic) return;
    EXPECT_TRUE(same_bits(y, back(convolution(gpu_x, gpu_weight, gpu, options))));
    EXPECT_TRUE(same_bits(dx, back(convolution_input_gradient(gpu_dy, gpu_weight, gpu, options))));
  }

  KernelMapView cpu, gpu;
  Channels channels;
  Tensor x, dy, weight, gpu_x, gpu_dy, gpu_weight;
  Expected forward, backward;
};

void expect_all_ways(const MapPair& map, DType type, const Channels& channels, StreamView stream,
                     bool view_is_transposed = false) {
  SCOPED_TRACE(::testing::Message()
               << pumice::name_of(type) << ' ' << channels.in << " to " << channels.out << " in "
               << channels.groups << (view_is_transposed ? ", inverse" : ""));
  const Operands operands(map, type, channels, view_is_transposed, stream);
  for (const Way& way : all_ways()) {
    if (!way.tf32 || type == DType::f32) operands.expect(way);
  }
}

TEST(ConvolutionDataflowsGpu, give_the_same_on_every_kind_of_map) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 31, 33, 5000}) {
    SCOPED_TRACE(rows);
    const MapPair maps[] = {submanifold_pair(rows, stream), strided_pair(rows, false, stream),
                            strided_pair(rows, true, stream)};
    for (const MapPair& map : maps) {
      for (const DType type : kDeviceTypes)
        expect_all_ways(map, type, {16, 32, 1}, stream);
    }
    expect_all_ways(maps[1], DType::f16, {16, 32, 1}, stream, true);
  }
}

TEST(ConvolutionDataflowsGpu, generate_sites) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const CoordinateSetPtr coarse = chance_set(300, 8);
  const KernelMapPtr gpu = generative_map(CoordinateSet::copy_to(coarse, stream), cube(2, 2));
  // The CPU's map onto the sites in the order in which the device made them.
  const Tensor sites = copy_to_host(gpu->out()->coordinates(), stream);
  const MapPair map{transposed_map(coarse, CoordinateSet::create(sites), cube(2, 2)), gpu};
  for (const DType type : kDeviceTypes)
    expect_all_ways(map, type, {16, 24, 1}, stream);
}

TEST(ConvolutionDataflowsGpu, take_any_channels_and_groups) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(2000, stream);
  for (const DType type : kDeviceTypes) {
    for (const Channels& channels : {Channels{3, 5, 1},
                                     {4, 48, 1},
                                     {5, 16, 1},
                                     {48, 96, 1},
                                     {96, 96, 1},
                                     {160, 96, 1},
                                     {24, 48, 3},
                                     {20, 40, 20},
                                     {32, 32, 32},
                                     {33, 33, 33}}) {
      expect_all_ways(map, type, channels, stream);
    }
  }
}

TEST(ConvolutionDataflowsGpu, need_no_map_where_rows_meet_themselves) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 33, 3000}) {
    const CoordinateSetPtr set = chance_set(rows, 3);
    const MapPair map{submanifold_map(set, cube(1, 1)),
                      submanifold_map(CoordinateSet::copy_to(set, stream), cube(1, 1))};
    for (const DType type : kDeviceTypes) {
      expect_all_ways(map, type, {48, 20, 1}, stream);
      expect_all_ways(map, type, {32, 32, 32}, stream);
    }
  }
}

TEST(ConvolutionDataflowsGpu, finish_with_an_epilogue) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(3000, stream);
  for (const DType type : kDeviceTypes) {
    const Operands o(map, type, {32, 48, 1}, false, stream);
    const Tensor scale = chance_tensor({48}, DType::f32, 4);
    const Tensor shift = chance_tensor({48}, DType::f32, 5);
    const Tensor residual = chance_tensor({3000, 48}, type, 6);
    const Tensor there[] = {copy_to(stream, scale), copy_to(stream, shift),
                            copy_to(stream, residual)};
    const Tensor expected = convolution(o.x, o.weight, o.cpu,
                                        {.epilogue = {.scale = scale,
                                                      .shift = shift,
                                                      .residual = residual,
                                                      .activation = Activation::relu}});
    for (const Way& way : all_ways()) {
      if (way.tf32) continue;
      SCOPED_TRACE(name_of(way));
      expect_agrees(convolution(o.gpu_x, o.gpu_weight, o.gpu,
                                {.epilogue = {.scale = there[0],
                                              .shift = there[1],
                                              .residual = there[2],
                                              .activation = Activation::relu},
                                 .dataflow = way.dataflow,
                                 .numerics = {.deterministic = way.deterministic}}),
                    expected, 27 * 32, 27 * 32, "epilogue");
    }
  }
}

/// tf32 is asked for, and then it is not f32; f32 is not tf32.
TEST(ConvolutionDataflowsGpu, multiply_tf32_only_where_it_is_asked_for) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(2000, stream);
  const Operands o(map, DType::f32, {64, 64, 1}, false, stream);
  for (const Way& way : all_ways()) {
    if (way.tf32) continue;
    SCOPED_TRACE(name_of(way));
    ConvolutionOptions options{.dataflow = way.dataflow, .numerics = {.deterministic = true}};
    const Tensor exact = back(convolution(o.gpu_x, o.gpu_weight, o.gpu, options));
    options.numerics.tf32 = true;
    EXPECT_FALSE(same_bits(exact, back(convolution(o.gpu_x, o.gpu_weight, o.gpu, options))));
  }
  const ConvolutionOptions tf32{.numerics = {.tf32 = true}};
  const Expected gradient = weight_product(o.cpu, o.x, o.dy, o.channels);
  expect_close(back(convolution_weight_gradient(o.gpu_x, o.gpu_dy, o.gpu, tf32)), gradient,
               kTf32Roundings);
  expect_sentence([&] { convolution(o.x, o.weight, o.cpu, tf32); }, {"tf32", "CPU"});
  const Tensor half = copy_to(stream, o.x.to(DType::f16));
  const Tensor half_weight = copy_to(stream, o.weight.to(DType::f16));
  expect_sentence([&] { convolution(half, half_weight, o.gpu, tf32); }, {"tf32", "f16"});
  expect_sentence([&] { convolution_weight_gradient(half, half, o.gpu, tf32); }, {"tf32", "f16"});
}

TEST(ConvolutionDataflowsGpu, are_recorded_into_graphs_or_refuse) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(1000, stream);
  const Operands o(map, DType::f16, {32, 32, 1}, false, stream);
  for (const bool deterministic : {false, true}) {
    ConvolutionOptions options{.dataflow = Dataflow::fetch_on_demand,
                               .numerics = {.deterministic = deterministic}};
    (void)convolution(o.gpu_x, o.gpu_weight, o.gpu, options);   // kernels and tiles
    Tensor kept({1000, 32}, DType::f16, stream);
    const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
      const Tensor y = convolution(o.gpu_x, o.gpu_weight, o.gpu, options);
      copy_async(kept.view(), y, stream);
    });
    graph.launch();
    expect_close(back(kept), o.forward, kRoundings);
  }
  if (!cuda::cublas_state().reason.empty()) return;
  expect_sentence(
      [&] {
        cuda::Graph::capture(stream, [&] {
          convolution(o.gpu_x, o.gpu_weight, o.gpu, {.dataflow = Dataflow::gather_gemm_scatter});
        });
      },
      {"gather_gemm_scatter", "recorded", "fetch_on_demand"});
}

}   // namespace
}   // namespace pumice
