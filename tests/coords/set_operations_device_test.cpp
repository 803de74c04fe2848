// Covers operations on sets that are on a CUDA device: the CPU's sites, in the CPU's rows.
#include <pumice/coords/set_operations.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/stream.hpp>

#include "support/gpu.hpp"

namespace pumice {
namespace {

using test::kGpu;

CoordinateSetPtr random_set(std::int64_t draws, std::uint64_t seed, std::int32_t low,
                            std::int32_t high) {
  Random random(seed, 5);
  std::vector<std::int32_t> drawn;
  for (std::int64_t i = 0; i < draws; ++i) {
    drawn.push_back(static_cast<std::int32_t>(random.integer(0, 1)));
    for (int axis = 0; axis < 3; ++axis)
      drawn.push_back(static_cast<std::int32_t>(random.integer(low, high)));
  }
  CoordinateOptions options;
  options.batch_size = 2;
  const auto all = Tensor::from(std::span<const std::int32_t>(drawn), Shape{draws, 4});
  // Twice a site is refused: a union with itself keeps one of each.
  std::vector<std::int32_t> once;
  for (std::int64_t i = 0; i < draws; ++i) {
    const std::int32_t* site = all.data<std::int32_t>() + 4 * i;
    bool seen = false;
    for (std::size_t j = 0; j < once.size() && !seen; j += 4)
      seen = std::equal(site, site + 4, once.begin() + static_cast<std::ptrdiff_t>(j));
    if (!seen) once.insert(once.end(), site, site + 4);
  }
  const auto rows = static_cast<std::int64_t>(once.size()) / 4;
  return CoordinateSet::create(Tensor::from(std::span<const std::int32_t>(once), Shape{rows, 4}),
                               options);
}

template <class T> std::vector<T> values(const Tensor& tensor) {
  const Tensor host = copy_to_host(tensor, tensor.stream());
  const auto span = host.span<T>();
  return {span.begin(), span.end()};
}

void expect_same(const CoordinateSet& device, const CoordinateSet& cpu) {
  EXPECT_EQ(device.size(), cpu.size());
  EXPECT_EQ(device.batch_size(), cpu.batch_size());
  EXPECT_EQ(device.stride(), cpu.stride());
  EXPECT_EQ(values<std::int32_t>(device.coordinates()), values<std::int32_t>(cpu.coordinates()));
}

struct Sizes {
  std::int64_t left, right;
};
class SetOperationsGpu : public ::testing::TestWithParam<Sizes> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SetOperationsGpu,
                         ::testing::Values(Sizes{0, 0}, Sizes{1, 0}, Sizes{0, 33}, Sizes{31, 1},
                                           Sizes{3000, 2000}));

TEST_P(SetOperationsGpu, UniteAsOnTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int32_t reach : {12, 5000}) {   // one layout for both, and two
    const auto left = random_set(GetParam().left, 1, -12, 12);
    const auto right = random_set(GetParam().right, 2, -12, reach);
    const UnionSet cpu = unite(*left, *right);
    const UnionSet device =
        unite(*CoordinateSet::copy_to(left, stream), *CoordinateSet::copy_to(right, stream));
    expect_same(*device.set, *cpu.set);
    EXPECT_EQ(values<std::int32_t>(device.left_row), values<std::int32_t>(cpu.left_row));
    EXPECT_EQ(values<std::int32_t>(device.right_row), values<std::int32_t>(cpu.right_row));
  }
}

TEST_P(SetOperationsGpu, PruneAsOnTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto set = random_set(GetParam().left, 3, -12, 12);
  Tensor keep(Shape{set->size()}, DType::u8);
  for (std::int64_t row = 0; row < set->size(); ++row)
    keep.data<std::uint8_t>()[row] = row % 3 == 0 ? 7 : 0;
  const PrunedSet cpu = prune_set(*set, keep);
  const PrunedSet device = prune_set(*CoordinateSet::copy_to(set, stream), copy_to(stream, keep));
  expect_same(*device.set, *cpu.set);
  EXPECT_EQ(values<std::int32_t>(device.kept), values<std::int32_t>(cpu.kept));
}

TEST_P(SetOperationsGpu, ReorderAsOnTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto set = coarsen(*random_set(GetParam().left, 7, -12, 12), {1, 1, 1, 1});
  Tensor row(Shape{set->size()}, DType::i32);
  for (std::int64_t rank = 0; rank < set->size(); ++rank)
    row.data<std::int32_t>()[rank] = static_cast<std::int32_t>(set->size() - 1 - rank);
  const auto there = coarsen(*CoordinateSet::copy_to(set, stream), {1, 1, 1, 1});
  const auto device = reorder(*there, copy_to(stream, row));
  expect_same(*device, *reorder(*set, row));
}

TEST_P(SetOperationsGpu, CoarsenAsOnTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto set = random_set(GetParam().left, 4, -40, 40);
  for (const Axes factor : {Axes{2, 2, 2, 1}, Axes{3, 3, 3, 1}, Axes{1, 2, 5, 1}}) {
    const auto cpu = coarsen(*set, factor);
    const auto device = coarsen(*CoordinateSet::copy_to(set, stream), factor);
    expect_same(*device, *cpu);
    EXPECT_EQ(values<std::int64_t>(batch_ranges(*device)),
              values<std::int64_t>(batch_ranges(*cpu)));
  }
}

}   // namespace
}   // namespace pumice
