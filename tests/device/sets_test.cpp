// Coordinate sets made by device code beside those of the CPU.
// Covers create_sets of src/coords/cuda.
#include "coords/cuda/create_sets.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/grid/sort_arguments.h>
#include <pumice/coords/set_operations.hpp>
#include <pumice/coords/unique.hpp>

#include "device/device_sets.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

struct Case {
  int dimension;
  std::size_t cells;
  std::int32_t extent;
};
const Case kCases[] = {{3, 0, 8},     {3, 1, 8},    {3, 31, 4},   {3, 33, 40},    {3, 3000, 30},
                       {1, 500, 900}, {2, 900, 60}, {4, 1200, 9}, {3, 5000, 3000}};

PUMICE_DEVICE_TEST(DeviceSets, HoldWhatTheSetsOfTheCpuHold) {
  for (const auto& [dimension, size, extent] : kCases) {
    SCOPED_TRACE(::testing::Message() << size << " cells of dimension " << dimension);
    const auto cpu = random_set(dimension, size, extent, size + 1);
    const auto runner = make_runner();
    const auto created = create_on_device(*runner, *cpu, 1, cuda::Repeats::refuse, 10);
    EXPECT_EQ(runner->record().code, kFine);
    expect_same_set(created.sets[0].ref(), *cpu);
  }
}

PUMICE_DEVICE_TEST(DeviceSets, APyramidIsWhatCoarseningGives) {
  for (const auto& [dimension, size, extent] : kCases) {
    SCOPED_TRACE(::testing::Message() << size << " cells of dimension " << dimension);
    const auto cpu = random_set(dimension, size, extent, size);
    const auto runner = make_runner();
    const auto created = create_on_device(*runner, *cpu, 5, cuda::Repeats::refuse, 0);
    CoordinateSetPtr level = cpu;
    for (std::size_t k = 1; k < 5; ++k) {
      level = coarsen(*level, axes(dimension, 2));
      ASSERT_EQ(level->layout(), created.sets[k].layout());
      expect_same_set(created.sets[k].ref(), *level);
    }
  }
}

PUMICE_DEVICE_TEST(DeviceSets, HalvingASetNeedsNoSort) {
  const auto cpu = random_set(3, 4000, 50, 5);
  const auto runner = make_runner();
  const auto created = create_on_device(*runner, *cpu, 1, cuda::Repeats::refuse, 0);
  const std::size_t before = runner->launches().size();
  const std::vector<cuda::SetCapacity> capacities(2, cuda::capacity_for_rows(4000));
  const auto levels = cuda::halve_set(*runner, created.sets[0].ref(), 1, capacities, "levels");
  EXPECT_EQ(runner->launches().size() - before, 3u);   // a fill, cells, blocks
  const auto half = coarsen(*cpu, axes(3, 2));
  expect_same_set(levels[0].ref(), *half);
  expect_same_set(levels[1].ref(), *coarsen(*half, axes(3, 2)));
}

PUMICE_DEVICE_TEST(DeviceSets, MoreSitesThanTheSumsOfLevelsHoldAreRefused) {
  const auto cpu = random_set(3, 10, 5, 5);
  const auto runner = make_runner();
  const auto created = create_on_device(*runner, *cpu, 1, cuda::Repeats::refuse, 0);
  CoordinateSetRef roomy = created.sets[0].ref();
  roomy.rows.capacity = std::int64_t{1} << 30;
  const std::vector<cuda::SetCapacity> capacities(1, cuda::capacity_for_rows(10));
  EXPECT_EQ(
      message_of([&] { (void)cuda::halve_set(*runner, roomy, 1, capacities, "levels"); }),
      "room for 1073741824 sites; on a device the most is 1073741823, so take a smaller batch");
}

PUMICE_DEVICE_TEST(DeviceSets, RepeatsMergeAsUniqueDoes) {
  Random random(6);
  const Tensor cells = tensor_of(random_cells(3000, 3, 11, random), 3);
  const UniqueCoordinates cpu = unique_coordinates(cells, {.batch_size = 3});
  const auto runner = make_runner();
  const auto created = create_on_device(*runner, cells, *cpu.set, 2, cuda::Repeats::merge, 7);
  expect_same_set(created.sets[0].ref(), *cpu.set);
  EXPECT_TRUE(std::equal(cpu.row_of.span<std::int32_t>().begin(),
                         cpu.row_of.span<std::int32_t>().end(), created.row_of.data()));
  EXPECT_TRUE(std::equal(cpu.first.span<std::int32_t>().begin(),
                         cpu.first.span<std::int32_t>().end(), created.first.data()));
}

PUMICE_DEVICE_TEST(DeviceSets, ARepeatedRowIsNamed) {
  const Cells cells = {{0, 1, 2, 3}, {0, 4, 4, 4}, {0, 1, 2, 3}, {0, -5, 0, 0}, {0, 1, 2, 3}};
  const auto cpu = CoordinateSet::create(tensor_of({cells[0], cells[1], cells[3]}, 3));
  const auto runner = make_runner();
  const auto created =
      create_on_device(*runner, tensor_of(cells, 3), *cpu, 2, cuda::Repeats::refuse, 0);
  EXPECT_EQ(runner->record().code, kDuplicateRows);
  EXPECT_EQ(runner->record().needed, 2);
  EXPECT_EQ(runner->record().capacity, 5);
  EXPECT_EQ(runner->record().row, 4);
  for (const auto& set : created.sets) {
    EXPECT_TRUE(set.rows().poisoned());
    EXPECT_TRUE(set.blocks().poisoned());
  }
}

PUMICE_DEVICE_TEST(DeviceSets, ARowOutsideTheDeclaredBoundsIsNamed) {
  const auto cpu = CoordinateSet::create(tensor_of({{0, 0, 0, 0}, {1, 9, 9, 9}}, 3));
  for (const Cell& outside : Cells{{2, 1, 1, 1}, {-1, 1, 1, 1}, {0, 10, 1, 1}, {0, 1, 1, -1}}) {
    const auto runner = make_runner();
    const auto created = create_on_device(*runner, tensor_of({{0, 1, 1, 1}, outside}, 3), *cpu, 1,
                                          cuda::Repeats::refuse, 3);
    EXPECT_EQ(runner->record().code, kOutsideLayout);
    EXPECT_EQ(runner->record().needed, 1);
    EXPECT_EQ(runner->record().capacity, 2);
    EXPECT_EQ(runner->record().row, 1);
    EXPECT_TRUE(created.sets[0].rows().poisoned());
  }
}

PUMICE_DEVICE_TEST(DeviceSets, ALevelThatNeedsMoreRoomSaysHowMuchAndTheOthersStay) {
  const auto cpu = random_set(3, 900, 20, 9);
  const auto half = coarsen(*cpu, axes(3, 2));
  cuda::CreateOptions options = options_of(*cpu, 3, cuda::Repeats::refuse);
  options.capacities[1].rows = half->size() - 1;
  options.capacities[1].blocks = 10;
  const auto runner = make_runner();
  const DeviceRows rows(*runner, cpu->coordinates(), 0);
  const auto created = cuda::create_sets(*runner, rows.get(), options);
  EXPECT_EQ(runner->record().code, kOverCapacity);
  EXPECT_EQ(runner->record().needed, half->size());
  EXPECT_EQ(runner->record().capacity, half->size() - 1);
  EXPECT_TRUE(created.sets[1].rows().poisoned());
  EXPECT_EQ(*created.sets[1].rows().count, half->size());
  EXPECT_TRUE(created.sets[1].blocks().poisoned());
  expect_same_set(created.sets[0].ref(), *cpu);
  expect_same_set(created.sets[2].ref(), *coarsen(*half, axes(3, 2)));
}

PUMICE_DEVICE_TEST(DeviceSets, MoreBlocksThanThereIsRoomForPoisonTheSet) {
  const auto cpu = random_set(3, 900, 90, 9);
  cuda::CreateOptions options = options_of(*cpu, 1, cuda::Repeats::refuse);
  options.capacities[0].blocks = cpu->index().blocks - 1;
  const auto runner = make_runner();
  const DeviceRows rows(*runner, cpu->coordinates(), 0);
  const auto created = cuda::create_sets(*runner, rows.get(), options);
  EXPECT_EQ(runner->record().code, kOverCapacity);
  EXPECT_EQ(runner->record().needed, cpu->index().blocks);
  EXPECT_TRUE(created.sets[0].rows().poisoned());
}

PUMICE_DEVICE_TEST(DeviceSets, PoisonGoesOn) {
  const auto cpu = CoordinateSet::create(tensor_of({{0, 0, 0, 0}, {0, 9, 9, 9}}, 3));
  const auto runner = make_runner();
  DeviceRows rows(*runner, cpu->coordinates(), 0);
  rows.count[0] = 3;
  const auto created =
      cuda::create_sets(*runner, rows.get(), options_of(*cpu, 2, cuda::Repeats::refuse));
  EXPECT_EQ(runner->record().code, kPoisonedInput);
  EXPECT_EQ(*created.sets[0].rows().count, kPoison);
  EXPECT_EQ(*created.sets[1].rows().count, kPoison);
}

PUMICE_LARGE_DEVICE_TEST(DeviceSets, ALargeSetTakesALaunchAPassAndFour) {
  const auto cpu = random_set(3, 70000, 1500, 11);
  const auto runner = make_runner();
  const auto created = create_on_device(*runner, *cpu, 5, cuda::Repeats::refuse, 1000);
  // A fill, keys, which are counted where they are written, the passes, cells, blocks.
  EXPECT_EQ(runner->launches().size(),
            4u + static_cast<std::size_t>((key_bits(cpu->layout()) + kSortDigitBits - 1) /
                                          kSortDigitBits));
  expect_same_set(created.sets[0].ref(), *cpu);
}

}   // namespace
}   // namespace pumice::test
