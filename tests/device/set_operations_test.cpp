// Coarsening, unions, pruning and reordering on the device beside the CPU's.
// Covers set_operations of src/coords/cuda.
#include "coords/cuda/set_operations.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/coords/set_operations.hpp>

#include "coords/cpu/coarsen.hpp"
#include "device/device_sets.hpp"

namespace pumice::test {
namespace {

struct FactorCase {
  int dimension;
  Axes factor;
  bool shifts;
};
const FactorCase kFactors[] = {
    {3, {2, 2, 2}, true},    {3, {4, 4, 4}, true},     {3, {3, 3, 3}, false}, {3, {2, 2, 1}, false},
    {3, {6, 6, 6}, false},   {2, {5, 1}, false},       {1, {8}, true},        {1, {7}, false},
    {4, {2, 2, 2, 2}, true}, {4, {1, 1, 3, 1}, false},
};

cuda::CoarseCells coarse_cells_of(const CoordinateSet& set, const Axes& factor) {
  const auto range = range_of(set);
  return cuda::coarse_cells(set.layout(), range.low, range.high, set.batch_size(), factor);
}

PUMICE_DEVICE_TEST(DeviceSetOperations, CoarseSetsAreThoseOfTheCpu) {
  for (const auto& [dimension, factor, shifts] : kFactors) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1500}}) {
      SCOPED_TRACE(::testing::Message()
                   << size << " cells by " << factor[0] << ", dimension " << dimension);
      const auto cpu = random_set(dimension, size, dimension == 1 ? 3000 : 25, size);
      const auto runner = make_runner();
      const Mirror mirror(*runner, cpu);
      const auto cells = coarse_cells_of(*cpu, factor);
      EXPECT_EQ(cells.shift.has_value(), shifts);
      const auto coarse = cuda::coarsen_set(*runner, mirror.ref(), factor, cells, {},
                                            cuda::capacity_for_rows(cpu->size() + 1), "coarse");
      EXPECT_EQ(runner->record().code, kFine);
      expect_same_cells(*runner, coarse.ref(), *coarsen(*cpu, factor));
    }
  }
}

PUMICE_DEVICE_TEST(DeviceSetOperations, ABoxCutsCoarseSets) {
  Random random(3);
  const Cells cells = distinct_cells(random_cells(2000, 3, 22, random), random);
  Cells inside;
  for (Cell cell : cells) {
    for (std::size_t axis = 1; axis < 4; ++axis)
      cell[axis] += 11;
    inside.push_back(cell);
  }
  const auto cpu =
      CoordinateSet::create(tensor_of(inside, 3), {.spatial_shape = axes(3, 23), .batch_size = 3});
  for (const std::int32_t factor : {2, 3}) {
    CoordinateOptions options = coarser_options(*cpu, axes(3, factor));
    options.spatial_shape = Axes{5, 7, 6};
    const auto expected = coarsen_to(*cpu, axes(3, factor), options);
    const auto runner = make_runner();
    const Mirror mirror(*runner, cpu);
    const auto coarse_layout = coarse_cells_of(*cpu, axes(3, factor));
    const std::int64_t low[] = {0, 0, 0};
    const std::int64_t high[] = {4, 6, 5};
    const auto coarse = cuda::coarsen_set(*runner, mirror.ref(), axes(3, factor), coarse_layout,
                                          make_box(coarse_layout.layout, low, high),
                                          cuda::capacity_for_rows(cpu->size()), "coarse");
    expect_same_cells(*runner, coarse.ref(), *expected);
  }
}

PUMICE_DEVICE_TEST(DeviceSetOperations, UnionsAreThoseOfTheCpu) {
  for (const auto& [left_size, right_size, right_extent] :
       {std::tuple{900, 700, 12}, {0, 700, 12}, {900, 0, 12}, {0, 0, 12}, {1100, 400, 60}}) {
    const auto left = random_set(3, static_cast<std::size_t>(left_size), 12, 1);
    const auto right = random_set(3, static_cast<std::size_t>(right_size), right_extent, 2);
    const UnionSet cpu = unite(*left, *right);
    const auto runner = make_runner();
    const Mirror on_left(*runner, left);
    const Mirror on_right(*runner, right);
    const auto united =
        cuda::unite_sets(*runner, on_left.ref(), on_right.ref(), cpu.set->layout(),
                         cuda::capacity_for_rows(left->size() + right->size()), "union");
    EXPECT_EQ(runner->record().code, kFine);
    expect_same_set(united.set.ref(), *cpu.set);
    const auto left_row = cpu.left_row.span<std::int32_t>();
    const auto right_row = cpu.right_row.span<std::int32_t>();
    EXPECT_TRUE(std::equal(left_row.begin(), left_row.end(), united.row_of.data()));
    EXPECT_TRUE(
        std::equal(right_row.begin(), right_row.end(), united.row_of.data() + united.right_begin));
  }
}

PUMICE_DEVICE_TEST(DeviceSetOperations, PruningKeepsTheOrderOfRows) {
  for (const std::size_t size : {0u, 1u, 33u, 2000u}) {
    for (const int keep_one_in : {1, 2, 5, 1000000}) {
      const auto cpu = random_set(3, size, 15, size);
      Random random(size);
      Tensor keep({cpu->size()}, DType::u8);
      for (std::int64_t row = 0; row < cpu->size(); ++row)
        keep.data<std::uint8_t>()[row] = random.integer(1, keep_one_in) == 1 ? 1 : 0;
      const PrunedSet expected = prune_set(*cpu, keep);
      const auto runner = make_runner();
      const Mirror mirror(*runner, cpu);
      const auto on_device = runner->copy(std::span<const std::uint8_t>(keep.span<std::uint8_t>()));
      const auto pruned = cuda::prune_set(*runner, mirror.ref(), on_device.data(),
                                          cuda::capacity_for_rows(expected.set->size()), "pruned");
      EXPECT_EQ(runner->record().code, kFine);
      expect_same_set(pruned.set.ref(), *expected.set);
      const auto kept = expected.kept.span<std::int32_t>();
      EXPECT_TRUE(std::equal(kept.begin(), kept.end(), pruned.kept.data()));
    }
  }
}

PUMICE_DEVICE_TEST(DeviceSetOperations, ReorderedSetsAreThoseOfTheCpu) {
  for (const std::size_t size : {0u, 1u, 33u, 2000u}) {
    const auto cpu = coarsen(*random_set(3, size, 15, size), axes(3, 1));
    Tensor row({cpu->size()}, DType::i32);
    for (std::int64_t rank = 0; rank < cpu->size(); ++rank)
      row.data<std::int32_t>()[rank] = static_cast<std::int32_t>((rank + 7) % cpu->size());
    const auto runner = make_runner();
    const Mirror mirror(*runner, cpu);
    const auto on_device = runner->copy(std::span<const std::int32_t>(row.span<std::int32_t>()));
    const auto reordered = cuda::reorder_set(*runner, mirror.ref(), on_device.data(),
                                             cuda::capacity_for_rows(cpu->size()), "reordered");
    EXPECT_EQ(runner->record().code, kFine);
    expect_same_set(reordered.ref(), *reorder(*cpu, row));
  }
}

PUMICE_DEVICE_TEST(DeviceSetOperations, AnOrderWithNumbersThatAreNoRowsSaysSo) {
  for (const std::int32_t wrong : {-1, 500, 1 << 30, std::numeric_limits<std::int32_t>::min()}) {
    const auto cpu = coarsen(*random_set(3, 500, 15, 1), axes(3, 1));
    std::vector<std::int32_t> row(static_cast<std::size_t>(cpu->size()));
    std::iota(row.begin(), row.end(), 0);
    row[123] = wrong;
    const auto runner = make_runner();
    const Mirror mirror(*runner, cpu);
    const auto on_device = runner->copy(std::span<const std::int32_t>(row));
    const auto reordered = cuda::reorder_set(*runner, mirror.ref(), on_device.data(),
                                             cuda::capacity_for_rows(cpu->size()), "reordered");
    EXPECT_EQ(runner->record().code, kBadRow);
    EXPECT_EQ(runner->record().row, 123);
    EXPECT_EQ(runner->record().needed, wrong);
    EXPECT_EQ(runner->record().capacity, cpu->size());
    const std::span order(reordered.ref().order, row.size());
    EXPECT_TRUE(std::ranges::all_of(
        order, [&](std::int32_t r) { return r >= 0 && std::int64_t{r} < cpu->size(); }));
  }
}

PUMICE_DEVICE_TEST(DeviceSetOperations, PruningToTooManyRowsSaysSo) {
  const auto cpu = random_set(3, 500, 15, 1);
  const auto runner = make_runner();
  const Mirror mirror(*runner, cpu);
  const std::vector<std::uint8_t> all(static_cast<std::size_t>(cpu->size()), 1);
  const auto keep = runner->copy(std::span<const std::uint8_t>(all));
  const auto pruned = cuda::prune_set(*runner, mirror.ref(), keep.data(),
                                      cuda::capacity_for_rows(cpu->size() - 1), "pruned");
  EXPECT_EQ(runner->record().code, kOverCapacity);
  EXPECT_EQ(runner->record().needed, cpu->size());
  EXPECT_TRUE(pruned.set.rows().poisoned());
}

PUMICE_DEVICE_TEST(DeviceSetOperations, RowsAndBatchesAreReadBack) {
  const auto cpu = random_set(3, 700, 15, 1);
  const auto runner = make_runner();
  const Mirror mirror(*runner, cpu);
  EXPECT_EQ(cells_of(*runner, mirror.ref()), cells_of(*cpu));
  const auto begin = cuda::batch_ranges(*runner, mirror.ref(), cpu->batch_size());
  const Tensor expected = batch_ranges(*cpu);
  EXPECT_TRUE(std::equal(begin.data(), begin.data() + begin.size(), expected.data<std::int64_t>()));
}

PUMICE_DEVICE_TEST(DeviceSetOperations, PoisonGoesOn) {
  const auto cpu = random_set(3, 100, 15, 1);
  const auto runner = make_runner();
  const Mirror mirror(*runner, cpu);
  const auto poison = runner->count(kPoison);
  CoordinateSetRef set = mirror.ref();
  set.rows.count = poison.data();
  const auto capacity = cuda::capacity_for_rows(200);
  const auto keep = runner->make<std::uint8_t>(cpu->size() + 3);
  EXPECT_EQ(*cuda::coarsen_set(*runner, set, axes(3, 3), coarse_cells_of(*cpu, axes(3, 3)), {},
                               capacity, "coarse")
                 .rows()
                 .count,
            kPoison);
  EXPECT_EQ(*cuda::unite_sets(*runner, mirror.ref(), set, cpu->layout(), capacity, "union")
                 .set.rows()
                 .count,
            kPoison);
  EXPECT_EQ(*cuda::prune_set(*runner, set, keep.data(), capacity, "pruned").set.rows().count,
            kPoison);
  EXPECT_EQ(runner->record().code, kPoisonedInput);
}

}   // namespace
}   // namespace pumice::test
