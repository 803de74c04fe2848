// Kernel maps of real scans: known counts, and a map that another engine recorded.
// Covers build and kernel_map on recorded scans.
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include <pumice/coords/set_operations.hpp>
#include <pumice/coords/unique.hpp>
#include <pumice/maps/build.hpp>

#include "maps/map_invariants.hpp"
#include "support/data.hpp"
#include "support/stored_zip.hpp"

namespace pumice::test {
namespace {

KernelWindow three_cubed() {
  return submanifold_window(3, {3, 3, 3}, {1, 1, 1});
}

template <class Number> std::vector<Number> numbers_in(const std::vector<char>& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

template <class Number> std::vector<Number> read_numbers(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return numbers_in<Number>({std::istreambuf_iterator<char>(file), {}});
}

/// The cells of a KITTI scan's points, in single precision.
CoordinateSetPtr voxels_of_scan(const std::filesystem::path& path, float voxel) {
  const auto points = read_numbers<float>(path);
  std::vector<std::int32_t> cells;
  for (std::size_t i = 0; i < points.size(); i += 4) {
    cells.push_back(0);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      cells.push_back(static_cast<std::int32_t>(std::floor(points[i + axis] / voxel)));
    }
  }
  const auto rows = static_cast<std::int64_t>(cells.size() / 4);
  return unique_coordinates(ConstTensorView(cells.data(), DType::i32, Shape{rows, 4})).set;
}

TEST(RealMaps, OfASemanticKittiScanHaveItsKnownCounts) {
  PUMICE_NEEDS_DATA(path, "lidar/semantickitti/seq00_000000.bin");
  auto set = voxels_of_scan(path, 0.05f);
  EXPECT_EQ(set->size(), 91767);
  const auto map = submanifold_map(set, three_cubed());
  expect_well_formed(*map);
  EXPECT_TRUE(map->view().has_identity_offset);
  EXPECT_EQ(map->pairs(), 346221);   // 3.77 a voxel
  std::vector<std::int64_t> levels;
  for (int level = 1; level <= 4; ++level) {
    set = coarsen(*set, axes(3, 2));
    levels.push_back(set->size());
  }
  // "About 60k, 32k, 14.5k, 5.9k" by another program's account.
  EXPECT_NEAR(static_cast<double>(levels[0]), 60e3, 500);
  EXPECT_NEAR(static_cast<double>(levels[1]), 32e3, 500);
  EXPECT_NEAR(static_cast<double>(levels[2]), 14.5e3, 500);
  EXPECT_NEAR(static_cast<double>(levels[3]), 5.9e3, 100);
}

TEST(RealMaps, OfACenterPointInputHaveItsKnownCount) {
  PUMICE_NEEDS_DATA(path, "maps/lidarai_centerpoint_in_indices_xyz.torch.int32.tensor");
  const auto numbers = read_numbers<std::int32_t>(path);
  ASSERT_GE(numbers.size(), 5u);
  ASSERT_EQ(numbers[0], 0x33FF1101);
  const std::int64_t rows = numbers[3];
  ASSERT_EQ(static_cast<std::int64_t>(numbers.size()), 5 + rows * 4);
  const auto set =
      CoordinateSet::create(ConstTensorView(numbers.data() + 5, DType::i32, Shape{rows, 4}),
                            {.spatial_shape = Axes{1440, 1440, 41}});
  EXPECT_EQ(set->size(), 79745);
  EXPECT_EQ(submanifold_map(set, three_cubed())->pairs(), 591581);
}

struct RecordedMap {
  std::int64_t voxels = 94595;
  std::vector<std::int64_t> begin;   // [28]
  std::vector<std::int32_t> in;
  std::vector<std::int32_t> out;
  KernelMapView view() const {
    return {.offsets = 27,
            .in_rows = voxels,
            .out_rows = voxels,
            .offset_begin = begin,
            .in = in,
            .out = out};
  }
};

RecordedMap read_recorded_map(const std::filesystem::path& path) {
  const auto entries = read_stored_zip(path);
  const auto begin = numbers_in<std::int32_t>(entries.at("archive/data/1"));
  const auto rows = numbers_in<std::int32_t>(entries.at("archive/data/2"));
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
  return {.begin = {begin.begin(), begin.end()},
          .in = {rows.begin(), middle},
          .out = {middle, rows.end()}};
}

TEST(RecordedMap, HoldsTheInvariantsOurMapsHold) {
  PUMICE_NEEDS_DATA(path, "maps/minkunet_semantickitti_level0_map.pth");
  const RecordedMap map = read_recorded_map(path);
  const KernelMapView view = map.view();
  ASSERT_EQ(view.pairs(), 285855);
  ASSERT_EQ(map.begin.size(), 28u);
  ASSERT_EQ(map.begin.back(), view.pairs());
  EXPECT_TRUE(rows_are_distinct_within_offsets(view, view.in));
  EXPECT_TRUE(rows_are_distinct_within_offsets(view, view.out));
  EXPECT_EQ(view.pairs_of(13), map.voxels);   // the centre is recorded too
  std::set<brute_force::Pair> mirrored;
  for (const auto& [offset, in, out] : pair_set(view))
    mirrored.emplace(26 - offset, out, in);
  EXPECT_EQ(mirrored, pair_set(view));
}

using Cell = std::array<std::int32_t, 3>;

/// A voxel's neighbours in a recorded map: who, and how far away.
struct Step {
  std::int32_t to;
  Cell by;
};

std::vector<std::vector<Step>> steps_of(const RecordedMap& map) {
  std::vector<std::vector<Step>> steps(static_cast<std::size_t>(map.voxels));
  for (int k = 0; k < 27; ++k) {
    const Cell by{k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
    for (auto i = static_cast<std::size_t>(map.begin[static_cast<std::size_t>(k)]);
         i < static_cast<std::size_t>(map.begin[static_cast<std::size_t>(k) + 1]); ++i) {
      steps[static_cast<std::size_t>(map.out[i])].push_back({map.in[i], by});
    }
  }
  return steps;
}

/// Coordinates that explain a recorded map: breadth-first over its pairs, one connected component
/// after the other, each moved along the first axis until it is clear of the one before. A pair
/// that contradicts the coordinates found so far fails the test.
std::vector<std::int32_t> rebuild_coordinates(const RecordedMap& map) {
  const auto steps = steps_of(map);
  std::vector<Cell> cell(steps.size());
  std::vector<bool> placed(steps.size(), false);
  std::int32_t clear = 0;   // first coordinate past all components placed
  for (std::size_t start = 0; start < steps.size(); ++start) {
    if (placed[start]) continue;
    placed[start] = true;
    std::vector<std::size_t> component{start};
    for (std::size_t at = 0; at < component.size(); ++at) {
      const Cell here = cell[component[at]];
      for (const Step& step : steps[component[at]]) {
        const auto to = static_cast<std::size_t>(step.to);
        const Cell there{here[0] + step.by[0], here[1] + step.by[1], here[2] + step.by[2]};
        if (!placed[to]) {
          placed[to] = true;
          cell[to] = there;
          component.push_back(to);
        } else {
          EXPECT_EQ(cell[to], there) << "voxel " << to << " is in two places";
        }
      }
    }
    std::int32_t low = 0;
    std::int32_t high = 0;
    for (const std::size_t voxel : component) {
      low = std::min(low, cell[voxel][0]);
      high = std::max(high, cell[voxel][0]);
    }
    for (const std::size_t voxel : component)
      cell[voxel][0] += clear - low;
    clear += high - low + 3;
  }
  std::vector<std::int32_t> coordinates;
  for (const Cell& c : cell)
    coordinates.insert(coordinates.end(), {0, c[0], c[1], c[2]});
  return coordinates;
}

TEST(RecordedMap, ComesBackFromCoordinatesRebuiltFromItsOffsets) {
  PUMICE_NEEDS_DATA(path, "maps/minkunet_semantickitti_level0_map.pth");
  const RecordedMap recorded = read_recorded_map(path);
  const auto coordinates = rebuild_coordinates(recorded);
  const auto set = CoordinateSet::create(
      ConstTensorView(coordinates.data(), DType::i32, Shape{recorded.voxels, 4}));
  const auto map = submanifold_map(set, three_cubed());
  expect_well_formed(*map);
  EXPECT_EQ(pair_set(map->view()), pair_set(recorded.view()));
}

}   // namespace
}   // namespace pumice::test
