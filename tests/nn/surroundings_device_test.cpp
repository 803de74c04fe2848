// Whole networks on a CUDA device in surroundings that must not matter: threads with streams of
// their own, another device, memory full of NaN, scans without sites.
// Covers networks on a device.
#include <thread>

#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>
#include <pumice/nn/captured_network.hpp>

#include "nn/device_networks.hpp"
#include "support/poisoned_memory.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;
using pumice::test::PoisonedMemory;

constexpr DType kType = DType::f16;

std::int64_t some_sites() {
  return on_emulator() ? 40 : 3000;
}

/// A network with weights on the host, and scans to give it.
struct Scenes {
  explicit Scenes(std::string_view of, std::int64_t sites = some_sites()) : name(of) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      scans.push_back(scene_for(name, sites, seed));
    network = settled_network(name, scans.front());
  }
  std::shared_ptr<Module> on_device(StreamView stream) const {
    auto copy = copy_of(*network, name, kType);
    copy->to(stream);
    return copy;
  }

  std::string_view name;
  std::vector<SparseTensor> scans;
  std::shared_ptr<Module> network;
};

/// What a network answers to all scans, layer by layer and then as graphs.
std::vector<Answer> answers_on(StreamView stream, const Scenes& scenes) {
  const auto network = scenes.on_device(stream);
  std::vector<Answer> answers;
  for (const SparseTensor& x : scenes.scans)
    answers.push_back(answer_of(*network, on(x, kType, stream)));
  CapturedNetwork captured(network, stream);
  for (const SparseTensor& x : scenes.scans) {
    answers.push_back(answer_from(captured.forward(
        x.coordinates->coordinates(), x.features.to(kType), x.coordinates->options())));
  }
  return answers;
}

void expect_same_answers(const std::vector<Answer>& actual, const std::vector<Answer>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(same_bits(actual[i].coordinates, expected[i].coordinates)) << i;
    EXPECT_TRUE(same_bits(actual[i].features, expected[i].features)) << i;
  }
}

class NetworkSurroundingsGpu : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, NetworkSurroundingsGpu,
                         ::testing::Values("minkunet42", "centerpoint", "second"));

TEST_P(NetworkSurroundingsGpu, threads_with_streams_of_their_own_get_the_same_answers) {
  PUMICE_NEEDS_GPU();
  const Scenes scenes(GetParam());
  const std::vector<Answer> alone = answers_on(Stream(kGpu), scenes);
  std::vector<std::vector<Answer>> together(2);
  std::vector<std::thread> threads;
  for (auto& answers : together) {
    threads.emplace_back([&answers, &scenes] {
      const Stream stream(kGpu);
      for (int i = 0; i < (on_emulator() ? 1 : 5); ++i)
        answers = answers_on(stream, scenes);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const auto& answers : together)
    expect_same_answers(answers, alone);
}

TEST_P(NetworkSurroundingsGpu, one_network_serves_two_threads) {
  PUMICE_NEEDS_GPU();
  const Scenes scenes(GetParam());
  const Stream home(kGpu);
  const auto network = scenes.on_device(home);
  home.wait();
  const Answer alone = answer_of(*network, on(scenes.scans[0], kType, home));
  std::vector<Answer> together(2);
  std::vector<std::thread> threads;
  for (Answer& answer : together) {
    threads.emplace_back([&] {
      const Stream stream(kGpu);
      for (int i = 0; i < (on_emulator() ? 1 : 5); ++i)
        answer = answer_of(*network, on(scenes.scans[0], kType, stream));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const Answer& answer : together)
    EXPECT_TRUE(same_bits(answer.features, alone.features));
}

TEST_P(NetworkSurroundingsGpu, a_second_device_gives_the_same_answers) {
  PUMICE_NEEDS_GPUS(2);
  const Scenes scenes(GetParam());
  expect_same_answers(answers_on(Stream(Device{DeviceKind::cuda, 1}), scenes),
                      answers_on(Stream(kGpu), scenes));
}

TEST_P(NetworkSurroundingsGpu, memory_that_nobody_wrote_is_not_read) {
  PUMICE_NEEDS_GPU();
  const Scenes scenes(GetParam());
  const std::vector<Answer> plain = answers_on(Stream(kGpu), scenes);
  const auto poisoned = std::make_shared<PoisonedMemory>(cuda_allocator(kGpu.index));
  const AllocatorScope scope(kGpu, poisoned);
  expect_same_answers(answers_on(Stream(kGpu), scenes), plain);
  EXPECT_GT(poisoned->filled(), 0u);
}

TEST_P(NetworkSurroundingsGpu, graphs_take_scans_without_sites) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Scenes scenes(GetParam());
  CapturedNetwork captured(scenes.on_device(stream), stream);
  const auto forward = [&](const CoordinateSetPtr& set, const Tensor& features) {
    return answer_from(captured.forward(set->coordinates(), features.to(kType), set->options()));
  };
  const SparseTensor& x = scenes.scans.front();
  const Answer before = forward(x.coordinates, x.features);
  const auto empty = empty_scene(find_network(GetParam()).spatial_shape);
  EXPECT_EQ(forward(empty, Tensor(Shape{0, 4}, DType::f32)).features.rows(), 0);
  EXPECT_TRUE(same_bits(forward(x.coordinates, x.features).features, before.features));
}

/// Three sites reach the coarsest level of no network with more than a few rows, and one alone has
/// neighbours nowhere.
TEST_P(NetworkSurroundingsGpu, levels_with_a_handful_of_rows_are_right) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Scenes scenes(GetParam());
  const auto on_host = copy_of(*scenes.network, GetParam(), DType::f32);
  const auto on_device = copy_of(*scenes.network, GetParam(), DType::f32);
  on_device->to(stream);
  for (const std::int64_t sites : {1, 2, 3}) {
    const SparseTensor x = scene_for(GetParam(), sites);
    const Tensor actual = in_key_order(answer_of(*on_device, on(x, DType::f32, stream)));
    EXPECT_LT(relative_difference(actual, in_key_order(answer_of(*on_host, x))), 1e-5) << sites;
  }
}

}   // namespace
}   // namespace pumice::nn
