// What one launch makes for many maps at once: whatever their kinds and sizes, each is what it
// would be alone, and a map that has too little room takes none from the others.
// Covers cut_batch and match_batch of src/formats/cuda and src/maps/cuda.
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/coords/set_operations.hpp>
#include <pumice/maps/build.hpp>

#include "device/device_maps.hpp"
#include "device/device_sets.hpp"

namespace pumice::test {
namespace {

const KernelWindow kCube = submanifold_window(3, axes(3, 3), axes(3, 1));

cuda::CutRequest request_of(const CoordinateSetRef& in, const CoordinateSetRef& out,
                            const cuda::DeviceWindow& window, Reach reach = Reach::out_to_in) {
  return {.map = {.in = in, .out = out, .window = &window, .reach = reach},
          .tiles = cuda::TileOptions{},
          .pairs = cuda::PairOptions{}};
}

KernelWindow strided(std::int32_t size, std::int32_t stride) {
  return {.dimension = 3, .size = axes(3, size), .stride = axes(3, stride)};
}

/// A set, its cells, and maps between them of all four ways to match.
class EveryKind {
 public:
  EveryKind(TestRunner& runner, std::size_t cells, std::uint64_t seed)
      : fine_(random_set(3, cells, 20, seed)),
        coarse_(coarsen(*fine_, axes(3, 2))),
        thirds_(coarsen(*fine_, axes(3, 3))),
        on_device_{Mirror(runner, fine_), Mirror(runner, coarse_), Mirror(runner, thirds_)} {}

  /// Windows outlive the requests.
  std::vector<cuda::CutRequest> requests(const std::vector<cuda::DeviceWindow>& windows) const {
    const CoordinateSetRef fine = on_device_[0].ref(), coarse = on_device_[1].ref(),
                           thirds = on_device_[2].ref();
    return {request_of(fine, fine, windows[0]),                        // by blocks
            request_of(fine, coarse, windows[1]),                      // by children
            request_of(coarse, fine, windows[1], Reach::in_to_out),    // by parities
            request_of(fine, thirds, windows[2]),                      // by rows
            request_of(thirds, fine, windows[2], Reach::in_to_out)};   // by rows
  }
  std::vector<KernelMapPtr> cpu() const {
    return {submanifold_map(fine_, kCube), map_between(fine_, coarse_, strided(2, 2)),
            transposed_map(coarse_, fine_, strided(2, 2)),
            map_between(fine_, thirds_, strided(3, 3)),
            transposed_map(thirds_, fine_, strided(3, 3))};
  }

 private:
  CoordinateSetPtr fine_, coarse_, thirds_;
  std::array<Mirror, 3> on_device_;
};

std::vector<cuda::DeviceWindow> every_window(TestRunner& runner) {
  std::vector<cuda::DeviceWindow> windows;
  windows.emplace_back(runner, kCube);
  windows.emplace_back(runner, strided(2, 2));
  windows.emplace_back(runner, strided(3, 3));
  return windows;
}

PUMICE_DEVICE_TEST(DeviceBatchedMaps, MapsOfEveryKindAndSizeAreMatchedInOneLaunch) {
  const auto runner = make_runner();
  const auto windows = every_window(*runner);
  std::vector<EveryKind> kinds;
  for (const std::size_t cells : {900u, 0u, 31u})
    kinds.emplace_back(*runner, cells, cells + 2);
  std::vector<cuda::CutRequest> requests;
  std::vector<KernelMapPtr> cpu;
  for (const EveryKind& kind : kinds) {
    std::ranges::move(kind.requests(windows), std::back_inserter(requests));
    std::ranges::move(kind.cpu(), std::back_inserter(cpu));
  }
  ASSERT_LE(requests.size(), std::size_t{kMaxTasks});
  const auto maps = cuda::cut_maps(*runner, requests);
  EXPECT_EQ(std::ranges::count(runner->launches(), "match_maps"), 1);
  EXPECT_EQ(std::ranges::count(runner->launches(), "cut_tiles"), 1);
  EXPECT_EQ(std::ranges::count(runner->launches(), "list_pairs"), 1);
  EXPECT_EQ(runner->record().code, kFine);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_map(maps[i], cpu[i]->view(), 1);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceBatchedMaps, MoreTilesThanAreOrderedAtOnceStayStable) {
  const KernelWindow line = submanifold_window(1, {5}, {1});
  const auto set = random_set(1, 80000, 130000, 3);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow window(*runner, line);
  cuda::CutRequest request = request_of(mirror.ref(), mirror.ref(), window);
  request.tiles->tile_rows = 64;
  const std::vector<cuda::CutRequest> requests{request};
  const auto maps = cuda::cut_maps(*runner, requests);
  ASSERT_GT(maps[0].tiles().tiles.rows(), 1024);
  expect_same_map(maps[0], submanifold_map(set, line)->view(), 1);
}

/// Output rows by how a Gray code visits their masks of every `splits`-th offset in order of
/// frequency from the `split`-th on, in which the rarest offset is the highest bit; rows of one
/// mask in the order of their keys. Of more than 63 offsets neighbours in frequency share a bit.
std::vector<std::int32_t> rows_by_mask(const KernelMapView& map, const CoordinateSet& out,
                                       std::size_t splits = 1, std::size_t split = 0) {
  const auto rows = static_cast<std::size_t>(out.size());
  std::vector<std::int64_t> count(static_cast<std::size_t>(map.offsets));
  for (std::size_t k = 0; k < count.size(); ++k)
    count[k] = map.offset_begin[k + 1] - map.offset_begin[k];
  std::vector<std::size_t> by_count(count.size());
  std::iota(by_count.begin(), by_count.end(), std::size_t{0});
  std::ranges::stable_sort(by_count, std::greater{}, [&](std::size_t k) { return count[k]; });
  const std::size_t offsets = (count.size() + splits - 1) / splits;
  std::vector<std::uint64_t> code(rows);
  for (std::size_t place = 0; place * splits + split < by_count.size(); ++place) {
    const std::size_t k = by_count[place * splits + split];
    const std::size_t bit = offsets <= 63 ? place : place * 63 / offsets;
    for (auto i = map.offset_begin[k]; i < map.offset_begin[k + 1]; ++i)
      code[static_cast<std::size_t>(map.out[static_cast<std::size_t>(i)])] |= std::uint64_t{1}
                                                                              << bit;
  }
  const auto place = [&](std::int32_t row) {   // of a mask among those of a Gray code
    std::uint64_t word = code[static_cast<std::size_t>(row)];
    for (std::uint64_t shifted = word >> 1; shifted != 0; shifted >>= 1)
      word ^= shifted;
    return word;
  };
  const std::int32_t* const order = out.index().order;
  std::vector<std::int32_t> result(rows);
  std::iota(result.begin(), result.end(), 0);
  if (order != nullptr) std::copy_n(order, rows, result.begin());
  std::ranges::stable_sort(result, {}, place);
  return result;
}

/// The rows of one split in the order of its tiles.
std::vector<std::int32_t> rows_of_tiles(const cuda::CutMap& map, const CoordinateSet& out,
                                        int split = 0) {
  const TileMapRef& tiles = map.tiles();
  const std::int64_t tiles_of_split = (out.size() + tiles.tile_rows - 1) / tiles.tile_rows;
  const std::int32_t* const rows = tiles.out_row + split * tiles_of_split * tiles.tile_rows;
  return {rows, rows + out.size()};
}

PUMICE_DEVICE_TEST(DeviceBatchedMaps, RowsStandInTheOrderOfTheirMasks) {
  for (const std::size_t cells : {0u, 1u, 33u, 700u, 5000u}) {
    SCOPED_TRACE(cells);
    const auto set = random_set(3, cells, 24, cells);
    const auto coarse = coarsen(*set, axes(3, 2));
    const auto runner = make_runner();
    const Mirror in(*runner, set);
    const Mirror out(*runner, coarse);
    const auto windows = every_window(*runner);
    const std::vector<cuda::CutRequest> requests{request_of(in.ref(), in.ref(), windows[0]),
                                                 request_of(in.ref(), out.ref(), windows[1])};
    const auto maps = cuda::cut_maps(*runner, requests);
    EXPECT_EQ(rows_of_tiles(maps[0], *set),
              rows_by_mask(submanifold_map(set, kCube)->view(), *set));
    EXPECT_EQ(rows_of_tiles(maps[1], *coarse),
              rows_by_mask(map_between(set, coarse, strided(2, 2))->view(), *coarse));
  }
}

// A wrong order has right sums, which only take longer. 125 offsets have masks of four words; as
// one split they have keys of 64 bits, in which offsets share bits.
PUMICE_DEVICE_TEST(DeviceBatchedMaps, RowsOfEachSplitStandInTheOrderOfTheirOwnMasks) {
  const KernelWindow wide = submanifold_window(3, axes(3, 5), axes(3, 1));
  const auto set = random_set(3, 1500, 14, 6);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  for (const auto& [window, splits] :
       {std::pair(kCube, 2), {kCube, 3}, {kCube, 4}, {wide, 1}, {wide, 3}, {wide, 4}}) {
    SCOPED_TRACE(::testing::Message() << window.volume() << " offsets, splits " << splits);
    const cuda::DeviceWindow on_device(*runner, window);
    std::vector<cuda::CutRequest> requests{request_of(mirror.ref(), mirror.ref(), on_device)};
    requests[0].tiles->splits = splits;
    const auto maps = cuda::cut_maps(*runner, requests);
    const auto cpu = submanifold_map(set, window);
    for (int split = 0; split < splits; ++split) {
      EXPECT_EQ(rows_of_tiles(maps[0], *set, split),
                rows_by_mask(cpu->view(), *set, static_cast<std::size_t>(splits),
                             static_cast<std::size_t>(split)))
          << split;
    }
  }
}

PUMICE_DEVICE_TEST(DeviceBatchedMaps, PairsOfWholeTilesAndOneMoreAreListed) {
  for (const std::size_t cells : {1u, 511u, 512u, 513u, 1025u}) {
    SCOPED_TRACE(cells);
    const auto set = random_set(3, cells, 12, cells);
    const auto runner = make_runner();
    const Mirror mirror(*runner, set);
    const cuda::DeviceWindow window(*runner, kCube);
    cuda::CutRequest request = request_of(mirror.ref(), mirror.ref(), window);
    request.tiles.reset();
    const std::vector<cuda::CutRequest> requests{request};
    const auto maps = cuda::cut_maps(*runner, requests);
    expect_same_pairs(maps[0].pairs(), submanifold_map(set, kCube)->view());
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceBatchedMaps, EachSplitIsSortedByItsOwnDigits) {
  const auto set = random_set(3, 5000, 30, 9);   // more than one launch sorts
  const KernelWindow wide = submanifold_window(3, axes(3, 5), axes(3, 1));
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow cube(*runner, kCube);
  const cuda::DeviceWindow of_125(*runner, wide);
  for (const bool is_wide : {false, true}) {   // keys of 32 and of 64 bits
    const cuda::DeviceWindow& window = is_wide ? of_125 : cube;
    const auto cpu = submanifold_map(set, is_wide ? wide : kCube);
    std::vector<cuda::CutRequest> requests(2, request_of(mirror.ref(), mirror.ref(), window));
    requests[0].tiles->splits = 3;
    requests[1].tiles->sort_by_mask = false;
    const auto maps = cuda::cut_maps(*runner, requests);
    expect_same_map(maps[0], cpu->view(), 3);
    expect_same_map(maps[1], cpu->view(), 1);
  }
  EXPECT_EQ(std::ranges::count(runner->launches(), "sort_count_u32"), 0);
  EXPECT_EQ(std::ranges::count(runner->launches(), "sort_count_u64"), 0);
}

/// Those that a kernel may ask for before it knows how many tiles there are.
void expect_no_runs(const TileMapRef& tiles, std::int64_t from) {
  for (std::int64_t i = from; i < tiles.tiles.capacity; ++i) {
    EXPECT_EQ(tiles.tile_order[i].entry_begin, 0);
    EXPECT_EQ(tiles.tile_order[i].entry_end, 0);
  }
}

PUMICE_DEVICE_TEST(DeviceBatchedMaps, RunsPastTheLastTileAreEmpty) {
  for (const std::size_t cells : {0u, 1u, 300u}) {
    const auto set = random_set(3, cells, 9, 4);
    const auto runner = make_runner();
    const auto created = create_on_device(*runner, *set, 1, cuda::Repeats::refuse, 2000);
    const CoordinateSetRef there = created.sets[0].ref();
    const cuda::DeviceWindow window(*runner, kCube);
    const std::vector<cuda::CutRequest> requests{request_of(there, there, window)};
    const auto maps = cuda::cut_maps(*runner, requests);
    ASSERT_GT(maps[0].tiles().tiles.capacity, 10);
    expect_same_map(maps[0], submanifold_map(set, kCube)->view(), 1);
    expect_no_runs(maps[0].tiles(), maps[0].tiles().tiles.rows());
  }
}

PUMICE_DEVICE_TEST(DeviceBatchedMaps, AMapWithoutRoomIsPoisonAndTheOthersAreNot) {
  const auto set = random_set(3, 900, 14, 8);
  const auto cpu = submanifold_map(set, kCube);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow window(*runner, kCube);
  std::vector<cuda::CutRequest> requests(4, request_of(mirror.ref(), mirror.ref(), window));
  requests[1].tiles->entry_capacity = 3;
  requests[2].pairs->pair_capacity = 3;
  const auto maps = cuda::cut_maps(*runner, requests);
  EXPECT_EQ(runner->record().code, kOverCapacity);
  for (const std::size_t fits : {0u, 3u})
    expect_same_map(maps[fits], cpu->view(), 1);
  EXPECT_TRUE(maps[1].tiles().tiles.poisoned());
  EXPECT_EQ(*maps[1].entries().count, *maps[0].entries().count);
  expect_no_runs(maps[1].tiles(), 0);
  expect_same_pairs(maps[1].pairs(), cpu->view());
  EXPECT_TRUE(maps[2].pairs().pairs.poisoned());
  EXPECT_EQ(*maps[2].pairs().pairs.count, cpu->view().pairs());
}

PUMICE_DEVICE_TEST(DeviceBatchedMaps, RoomThatIsZeroAlreadyTakesNoFill) {
  const auto set = random_set(3, 5000, 30, 3);
  const auto cpu = submanifold_map(set, kCube);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow window(*runner, kCube);
  std::vector<cuda::CutRequest> requests(2, request_of(mirror.ref(), mirror.ref(), window));
  requests[1].tiles->splits = 2;
  const std::int64_t needed = cuda::zeroed_bytes(requests);
  for (const std::int64_t bytes : {needed, needed / 2, std::int64_t{0}}) {
    SCOPED_TRACE(bytes);
    const cuda::ZeroedRoom zeroed(bytes, runner->stream(), runner->allocator());
    std::ranges::fill(zeroed.words, 0u);
    const auto before = std::ranges::count(runner->launches(), "fill_ranges");
    const auto maps = cuda::cut_maps(*runner, requests, zeroed.arena);
    const auto fills = std::ranges::count(runner->launches(), "fill_ranges") - before;
    EXPECT_EQ(fills, bytes == needed ? 0 : 1);
    expect_same_map(maps[0], cpu->view(), 1);
    expect_same_map(maps[1], cpu->view(), 2);
  }
}

}   // namespace
}   // namespace pumice::test
