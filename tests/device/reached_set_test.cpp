// The sites that dilating and generative convolutions make, on the device beside the CPU's.
// Covers reached_set of src/maps/cuda.
#include "maps/cuda/reached_set.hpp"

#include <gtest/gtest.h>

#include <pumice/maps/build.hpp>

#include "device/device_sets.hpp"
#include "formats/cuda/cut_maps.hpp"
#include "maps/cpu/reached_cells.hpp"

namespace pumice::test {
namespace {

struct WindowCase {
  int dimension;
  Axes size;
  Axes stride;
  Axes padding;
  Axes dilation;
};
const WindowCase kWindows[] = {
    {3, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}},
    {3, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}},
    {3, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {3, {3, 3, 3}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
    {3, {3, 3, 1}, {2, 2, 1}, {1, 0, 0}, {2, 1, 1}},
    {2, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, {4}, {3}, {1}, {2}},
    {4, {3, 3, 3, 3}, {2, 2, 2, 2}, {1, 1, 1, 1}, {1, 1, 1, 1}},
    {3, {5, 5, 5}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}},
};

KernelWindow window_of(const WindowCase& c) {
  KernelWindow window;
  window.dimension = c.dimension;
  window.size = c.size;
  window.stride = c.stride;
  window.padding = c.padding;
  window.dilation = c.dilation;
  return window;
}

void expect_reached(TestRunner& runner, const CoordinateSetPtr& cpu, const KernelWindow& window,
                    Reach reach, const std::optional<Axes>& shape, const CoordinateSet& expected) {
  const Mirror mirror(runner, cpu);
  const auto cells =
      cuda::reached_cells(cpu->layout(), range_of(*cpu), window, reach, shape, cpu->batch_size());
  if (!cells) {
    EXPECT_EQ(expected.size(), 0);
    return;
  }
  const cuda::DeviceWindow on_device(runner, window);
  const auto reached = cuda::reached_set(runner, mirror.ref(), on_device, reach, *cells,
                                         cuda::capacity_for_rows(expected.size() + 2), "reached");
  EXPECT_EQ(runner.record().code, kFine);
  expect_same_cells(runner, reached.ref(), expected);
}

PUMICE_DEVICE_TEST(DeviceReachedSet, DilatingOutputsAreThoseOfTheCpu) {
  for (const WindowCase& c : kWindows) {
    const KernelWindow window = window_of(c);
    SCOPED_TRACE(to_string(window));
    for (const std::size_t size : {0u, 1u, 400u}) {
      const auto cpu = random_set(c.dimension, size, c.dimension == 1 ? 700 : 16, size);
      const auto expected = strided_set(cpu, window, StridedOutputs::dilating);
      expect_reached(*make_runner(), cpu, window, Reach::in_to_out, std::nullopt, *expected);
    }
  }
}

PUMICE_DEVICE_TEST(DeviceReachedSet, GeneratedOutputsAreThoseOfTheCpu) {
  for (const WindowCase& c : kWindows) {
    const KernelWindow window = window_of(c);
    SCOPED_TRACE(to_string(window));
    const auto cpu = random_set(c.dimension, 150, c.dimension == 1 ? 300 : 9, 4);
    const auto expected = generative_map(cpu, window)->out();
    expect_reached(*make_runner(), cpu, window, Reach::out_to_in, std::nullopt, *expected);
  }
}

PUMICE_DEVICE_TEST(DeviceReachedSet, AShapeCutsThem) {
  Cells cells;
  Random random(2);
  for (Cell cell : distinct_cells(random_cells(600, 3, 18, random), random)) {
    for (std::size_t axis = 1; axis < 4; ++axis)
      cell[axis] += 9;
    cells.push_back(cell);
  }
  const auto cpu =
      CoordinateSet::create(tensor_of(cells, 3), {.spatial_shape = axes(3, 19), .batch_size = 3});
  for (const WindowCase& c : kWindows) {
    if (c.dimension != 3) continue;
    const KernelWindow window = window_of(c);
    SCOPED_TRACE(to_string(window));
    const auto expected = strided_set(cpu, window, StridedOutputs::dilating);
    expect_reached(*make_runner(), cpu, window, Reach::in_to_out, expected->spatial_shape(),
                   *expected);
  }
}

PUMICE_DEVICE_TEST(DeviceReachedSet, KeysAreHalvedOrDoubledWherePossible) {
  const auto cpu = random_set(3, 300, 20, 1);
  const KernelWindow window = window_of(kWindows[0]);
  const auto range = range_of(*cpu);
  const auto down = cuda::reached_cells(cpu->layout(), range, window, Reach::in_to_out,
                                        std::nullopt, cpu->batch_size());
  EXPECT_EQ(down->layout, halved(cpu->layout()));
  const auto up = cuda::reached_cells(down->layout, down->range, window, Reach::out_to_in,
                                      std::nullopt, cpu->batch_size());
  EXPECT_EQ(up->layout, cpu->layout());
}

PUMICE_DEVICE_TEST(DeviceReachedSet, TooLittleRoomIsSaid) {
  const auto cpu = random_set(3, 400, 16, 1);
  const KernelWindow window = window_of(kWindows[0]);
  const auto expected = strided_set(cpu, window, StridedOutputs::dilating);
  const auto cells = cuda::reached_cells(cpu->layout(), range_of(*cpu), window, Reach::in_to_out,
                                         std::nullopt, cpu->batch_size());
  for (const cuda::SetCapacity capacity :
       {cuda::SetCapacity{expected->size() - 1, expected->size() - 1}, cuda::SetCapacity{700, 3},
        cuda::SetCapacity{0, 0}}) {
    const auto runner = make_runner();
    const Mirror mirror(*runner, cpu);
    const cuda::DeviceWindow on_device(*runner, window);
    const auto reached = cuda::reached_set(*runner, mirror.ref(), on_device, Reach::in_to_out,
                                           *cells, capacity, "reached");
    EXPECT_EQ(runner->record().code, kOverCapacity);
    EXPECT_GT(runner->record().needed, runner->record().capacity);
    EXPECT_TRUE(reached.rows().poisoned());
  }
}

PUMICE_DEVICE_TEST(DeviceReachedSet, PoisonGoesOn) {
  const auto cpu = random_set(3, 100, 16, 1);
  const KernelWindow window = window_of(kWindows[0]);
  const auto cells = cuda::reached_cells(cpu->layout(), range_of(*cpu), window, Reach::in_to_out,
                                         std::nullopt, cpu->batch_size());
  const auto runner = make_runner();
  const Mirror mirror(*runner, cpu);
  const auto poison = runner->count(kPoison);
  CoordinateSetRef set = mirror.ref();
  set.rows.count = poison.data();
  const cuda::DeviceWindow on_device(*runner, window);
  const auto reached = cuda::reached_set(*runner, set, on_device, Reach::in_to_out, *cells,
                                         cuda::capacity_for_rows(300), "reached");
  EXPECT_EQ(runner->record().code, kPoisonedInput);
  EXPECT_EQ(*reached.rows().count, kPoison);
}

}   // namespace
}   // namespace pumice::test
