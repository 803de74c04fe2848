// Covers sets made of coordinates that are on a CUDA device.
#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/coords/unique.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "support/gpu.hpp"

namespace pumice {
namespace {

using test::kGpu;

/// A diagonal of `rows` sites in two batch items, last first.
Tensor diagonal(std::int64_t rows) {
  std::vector<std::int32_t> cells;
  for (auto i = static_cast<std::int32_t>(rows) - 1; i >= 0; --i)
    cells.insert(cells.end(), {i % 2, i - 5, 2 * i, 7});
  return Tensor::from(std::span<const std::int32_t>(cells), Shape{rows, 4});
}

std::vector<std::int32_t> values(const Tensor& tensor) {
  const Tensor host = copy_to_host(tensor, tensor.stream());
  const auto span = host.span<std::int32_t>();
  return {span.begin(), span.end()};
}

CoordinateOptions declared(std::int64_t rows) {
  const auto last = static_cast<std::int32_t>(rows);
  return {.batch_size = 2,
          .bounds = CoordinateBounds{.low = {-5, 0, 0, 0}, .high = {last, 2 * last, 9, 0}}};
}

TEST(FromCoordinatesGpu, KeepsTheCallersRows) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 31, 33, 1500}) {
    const Tensor cells = diagonal(rows);
    const Tensor there = copy_to(stream, cells);
    for (const CoordinateOptions& options : {CoordinateOptions{}, declared(rows)}) {
      const auto set = CoordinateSet::create(there, options);
      EXPECT_EQ(set->device(), kGpu);
      EXPECT_EQ(set->size(), rows);
      EXPECT_EQ(set->batch_size(), options.batch_size.value_or(rows > 1 ? 2 : rows > 0 ? 1 : 0));
      EXPECT_EQ(values(set->coordinates()), values(cells));
    }
  }
}

TEST(FromCoordinatesGpu, ComesBackToTheHost) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 33, 1500}) {
    const Tensor cells = diagonal(rows);
    const auto here = CoordinateSet::create(cells, {.stride = {2, 2, 2, 1}, .batch_size = 5});
    const auto back = CoordinateSet::copy_to(CoordinateSet::copy_to(here, stream), {});
    EXPECT_EQ(back->device(), Device{});
    EXPECT_EQ(back->size(), rows);
    EXPECT_EQ(back->batch_size(), 5);
    EXPECT_EQ(back->stride(), here->stride());
    EXPECT_EQ(values(back->coordinates()), values(cells));
  }
}

TEST(FromCoordinatesGpu, MergesWhatRepeatsAsTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Tensor cells = diagonal(200);
  std::copy_n(cells.data<std::int32_t>(), 400, cells.data<std::int32_t>() + 400);
  const UniqueCoordinates cpu = unique_coordinates(cells, declared(200));
  const UniqueCoordinates device = unique_coordinates(copy_to(stream, cells), declared(200));
  EXPECT_EQ(device.set->size(), 100);
  EXPECT_EQ(values(device.set->coordinates()), values(cpu.set->coordinates()));
  EXPECT_EQ(values(device.row_of), values(cpu.row_of));
  EXPECT_EQ(values(device.first), values(cpu.first));
}

TEST(FromCoordinatesGpu, RefusesWhatRepeatsAtTheNextWait) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Tensor cells = diagonal(50);
  std::copy_n(cells.data<std::int32_t>(), 4, cells.data<std::int32_t>() + 40);
  const auto set = CoordinateSet::create(copy_to(stream, cells), declared(50));
  EXPECT_THROW(stream.wait(), UserError);
}

TEST(FromCoordinatesGpu, RefusesWhatIsOutsideItsBounds) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Tensor there = copy_to(stream, diagonal(50));
  CoordinateOptions narrow = declared(50);
  narrow.bounds->high[1] = 20;
  const auto set = CoordinateSet::create(there, narrow);
  EXPECT_THROW(stream.wait(), UserError);
  CoordinateOptions cut = declared(50);
  cut.spatial_shape = Axes{50, 50, 20, 1};
  const auto both = CoordinateSet::create(there, cut);
  EXPECT_THROW(stream.wait(), UserError);
  CoordinateOptions shaped;
  shaped.spatial_shape = Axes{10, 10, 10, 1};
  EXPECT_THROW(CoordinateSet::create(there, shaped), UserError);
}

}   // namespace
}   // namespace pumice
