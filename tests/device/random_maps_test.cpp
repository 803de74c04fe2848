// Random kernel map problems: sets of any size, place and order, windows of any shape, stride and
// dilation. The device's pairs and tiles beside the CPU's, which the brute-force reference checks.
// PUMICE_RANDOM_PROBLEMS says how many; by default 150 in the emulator and 20,000 on a GPU.
// Covers cut_maps of src/formats/cuda.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include <pumice/maps/build.hpp>

#include "device/device_maps.hpp"
#include "device/device_mirror.hpp"
#include "maps/map_problem.hpp"

namespace pumice::test {
namespace {

std::uint64_t problems_of(const TestRunner& runner) {
  const char* wanted = std::getenv("PUMICE_RANDOM_PROBLEMS");
  if (wanted != nullptr) return std::stoull(wanted);
  return runner.stream().device.kind == DeviceKind::cuda ? 20000 : 150;
}

/// A window whose masks and key arithmetic are of every kind: stride 1 and 2 more often than by
/// chance.
KernelWindow draw_window(int dimension, Random& random) {
  KernelWindow window = random_window(dimension, 3, random);
  const auto stride = static_cast<std::int32_t>(random.integer(0, 2));
  if (stride > 0) window.stride = axes(dimension, stride);
  if (random.integer(0, 1) == 0) window.dilation = axes(dimension, 1);
  return window;
}

struct Problem {
  KernelWindow window;
  CoordinateSetPtr fine;
  CoordinateSetPtr coarse;
};

Problem draw_problem(Random& random) {
  Problem problem;
  const int dimension = static_cast<int>(random.integer(1, 4));
  problem.window = draw_window(dimension, random);
  const Scatter scatter = random_scatter(dimension, false, random);
  problem.fine = make_set(strew(scatter, random), dimension);
  switch (random.integer(0, 3)) {
    case 0:   // any other set
      problem.coarse = make_set(strew(random_scatter(dimension, false, random), random), dimension);
      break;
    case 1:
      problem.coarse = strided_set(problem.fine, problem.window, StridedOutputs::dilating);
      break;
    case 2: problem.coarse = strided_set(problem.fine, problem.window, StridedOutputs::cell); break;
    default: problem.coarse = problem.fine;
  }
  return problem;
}

void check(TestRunner& runner, const Problem& problem, Random& random) {
  const Mirror fine(runner, problem.fine);
  const Mirror coarse(runner, problem.coarse);
  const cuda::DeviceWindow window(runner, problem.window);
  const auto volume = problem.window.volume();
  const int splits = static_cast<int>(random.integer(1, std::min<std::int64_t>(volume, 3)));
  const cuda::TileOptions tiles{.tile_rows = static_cast<std::int32_t>(64 * random.integer(1, 4)),
                                .splits = splits};
  const cuda::CutRequest requests[] = {
      {{fine.ref(), coarse.ref(), &window, Reach::out_to_in}, tiles, cuda::PairOptions{}},
      {{coarse.ref(), fine.ref(), &window, Reach::in_to_out}, tiles, cuda::PairOptions{}}};
  const auto maps = cuda::cut_maps(runner, requests);
  ASSERT_EQ(runner.record().code, kFine);
  expect_same_map(maps[0], map_between(problem.fine, problem.coarse, problem.window)->view(),
                  splits);
  expect_same_map(maps[1], transposed_map(problem.coarse, problem.fine, problem.window)->view(),
                  splits);
}

PUMICE_LARGE_DEVICE_TEST(DeviceRandomMaps, ArePairForPairThoseOfTheCpu) {
  const auto runner = make_runner();
  const std::uint64_t problems = problems_of(*runner);
  for (std::uint64_t seed = 0; seed < problems && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed, 4);
    const Problem problem = draw_problem(random);
    SCOPED_TRACE(::testing::Message()
                 << "problem " << seed << ": " << to_string(problem.window) << ", "
                 << problem.fine->size() << " fine and " << problem.coarse->size() << " coarse");
    check(*runner, problem, random);
  }
}

}   // namespace
}   // namespace pumice::test
