// Every operator on a CUDA device in surroundings that must not matter: memory full of NaN, other
// streams, other threads, another device, a hundred times.
// Covers every operator on a device.
#include <thread>

#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>

#include "ops/every_operator.hpp"
#include "support/poisoned_memory.hpp"

namespace pumice {
namespace {

using namespace test;

std::int64_t some_rows() {
  return on_emulator() ? 40 : 3000;
}

TEST(EveryOperatorGpu, reads_no_memory_that_nobody_wrote) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const DType type : kDeviceTypes) {
    if (on_emulator() && type != DType::f16) continue;
    for (const std::int64_t rows : {std::int64_t{0}, some_rows()}) {
      SCOPED_TRACE(std::string(name_of(type)) + ", " + std::to_string(rows) + " rows");
      const NamedResults plain = run_every_operator(rows, type, stream);
      const auto poisoned = std::make_shared<PoisonedMemory>(cuda_allocator(kGpu.index));
      const AllocatorScope scope(kGpu, poisoned);
      expect_same_results(run_every_operator(rows, type, stream), plain);
      EXPECT_GT(poisoned->filled(), 0u);
    }
  }
}

TEST(EveryOperatorGpu, gives_the_same_bits_on_every_stream_and_thread) {
  PUMICE_NEEDS_GPU();
  const DType type = DType::bf16;
  const NamedResults alone = run_every_operator(some_rows(), type, Stream(kGpu));
  expect_same_results(run_every_operator(some_rows(), type, StreamView{kGpu, nullptr}), alone);
  std::vector<NamedResults> together(4);
  std::vector<std::thread> threads;
  for (NamedResults& results : together) {
    threads.emplace_back([&results, type] {
      const Stream stream(kGpu);
      for (int i = 0; i < (on_emulator() ? 1 : 5); ++i)
        results = run_every_operator(some_rows(), type, stream);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const NamedResults& results : together)
    expect_same_results(results, alone);
}

TEST(EveryOperatorGpu, gives_the_same_bits_on_a_second_device) {
  PUMICE_NEEDS_GPUS(2);
  const Device second{DeviceKind::cuda, 1};
  for (const DType type : kDeviceTypes) {
    if (on_emulator() && type != DType::f16) continue;
    const NamedResults first = run_every_operator(some_rows(), type, Stream(kGpu));
    expect_same_results(run_every_operator(some_rows(), type, Stream(second)), first);
  }
}

struct Repeated {
  std::int64_t rows;
  Channels channels;
};

/// The map is built anew now and then, and another stream keeps the device busy meanwhile, so that
/// blocks start in other orders.
void expect_same_every_time(const Repeated& repeated, DType type, int times) {
  SCOPED_TRACE(std::string(name_of(type)) + ", " + std::to_string(repeated.rows) + " rows, " +
               std::to_string(repeated.channels.in) + " to " +
               std::to_string(repeated.channels.out));
  const auto& [in, out, groups] = repeated.channels;
  const Stream stream(kGpu);
  const Stream other(kGpu);
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  const CoordinateSetPtr set = CoordinateSet::copy_to(chance_set(repeated.rows, 7), stream);
  const CoordinateSetPtr noise = CoordinateSet::copy_to(chance_set(500, 8), other);
  const KernelMapPtr noise_map = submanifold_map(noise, cube);
  const Tensor noise_x = copy_to(other, chance_tensor({500, in}, type, 4));
  const Tensor noise_weight = copy_to(other, chance_tensor({27, in / groups, out}, type, 5));
  const Tensor x = copy_to(stream, chance_tensor({repeated.rows, in}, type, 1));
  const Tensor grad = copy_to(stream, chance_tensor({repeated.rows, out}, type, 2));
  const Tensor weight = copy_to(stream, chance_tensor({27, in / groups, out}, type, 3));
  const ConvolutionOptions options{.groups = groups, .numerics = {.deterministic = true}};
  KernelMapPtr map;
  NamedResults first;
  for (int i = 0; i < times; ++i) {
    if (i % 20 == 0) map = submanifold_map(set, cube);
    convolution(noise_x, noise_weight, noise_map->view(), {.groups = groups});
    NamedResults results;
    results.add("output", convolution(x, weight, map->view(), options));
    results.add("input gradient", convolution_input_gradient(grad, weight, map->view(), options));
    results.add("weight gradient", convolution_weight_gradient(x, grad, map->view(), options));
    if (i == 0) {
      first = results;
      continue;
    }
    expect_same_results(results, first);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "time " << i;
      return;
    }
  }
  wait(other);
}

TEST(DeterminismGpu, gives_the_same_bits_a_hundred_times) {
  PUMICE_NEEDS_GPU();
  const std::vector<Repeated> all = {
      {1000, {4, 24, 1}},    {1000, {32, 32, 32}},   {10'000, {96, 64, 1}},  {10'000, {5, 33, 1}},
      {10'000, {48, 24, 2}}, {100'000, {32, 32, 1}}, {100'000, {64, 128, 1}}};
  for (const DType type : kDeviceTypes) {
    if (on_emulator()) {
      expect_same_every_time({100, {6, 20, 1}}, type, 3);
      continue;
    }
    for (const Repeated& repeated : all)
      expect_same_every_time(repeated, type, 100);
  }
}

}   // namespace
}   // namespace pumice
