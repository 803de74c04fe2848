// Cuts that are counted before they have memory, beside the same cuts made at once: word for word,
// in memory of just the size that there is, and what the host hears where a set is poison.
// Covers counted_cuts and cut_batch of src/formats/cuda, and count_reader of src/coords/cuda.
#include "formats/cuda/counted_cuts.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/coords/set_operations.hpp>
#include <pumice/core/error.hpp>
#include <pumice/maps/kernel_window.hpp>

#include "device/device_maps.hpp"
#include "device/device_sets.hpp"

namespace pumice::test {
namespace {

using Launches = std::vector<std::string>;

const KernelWindow kCube = submanifold_window(3, axes(3, 3), axes(3, 1));
const KernelWindow kWide = submanifold_window(3, axes(3, 5), axes(3, 1));   // four mask words
const KernelWindow kHalving{.dimension = 3, .size = axes(3, 2), .stride = axes(3, 2)};

cuda::CutRequest with_tiles(cuda::CutRequest request, std::int32_t tile_rows, std::int32_t splits,
                            bool sort_by_mask = true) {
  request.tiles =
      cuda::TileOptions{.tile_rows = tile_rows, .splits = splits, .sort_by_mask = sort_by_mask};
  return request;
}

cuda::CutRequest with_pairs(cuda::CutRequest request) {
  request.pairs = cuda::PairOptions{};
  return request;
}

/// Cells and their coarser ones, in sets with room for many more.
class Scene {
 public:
  Scene(TestRunner& runner, std::size_t cells)
      : Scene(runner, random_set(3, cells, 14, cells + 1)) {}

  /// All kinds of cuts, of maps in both directions. Windows outlive the requests.
  std::vector<cuda::CutRequest> requests(const std::array<cuda::DeviceWindow, 3>& windows) const {
    const CoordinateSetRef fine = fine_.ref(), coarse = coarse_.ref();
    const cuda::CutRequest cube{.map = {fine, fine, &windows[0]}, .is_centred = true};
    const cuda::CutRequest wide{.map = {fine, fine, &windows[1]}, .is_centred = true};
    const cuda::CutRequest down{.map = {fine, coarse, &windows[2]}};
    const cuda::CutRequest up{.map = {coarse, fine, &windows[2], Reach::in_to_out}};
    return {with_pairs(with_tiles(cube, 128, 1)),
            with_tiles(cube, 64, 1),
            with_tiles(cube, 64, 3),
            with_tiles(cube, 256, 3),
            with_tiles(cube, 128, 2, false),
            with_tiles(wide, 64, 2),
            with_pairs(wide),
            with_pairs(with_tiles(down, 128, 1)),
            with_tiles(up, 128, 1),
            with_pairs(up)};
  }

 private:
  Scene(TestRunner& runner, const CoordinateSetPtr& fine)
      : fine_(runner, fine, 700), coarse_(runner, coarsen(*fine, axes(3, 2)), 700) {}

  Mirror fine_, coarse_;
};

RowCountRef as_known(const RowCountRef& rows) {
  return {nullptr, rows.rows()};
}

std::vector<cuda::CutMap> counted(TestRunner& runner,
                                  const std::vector<cuda::CutRequest>& requests) {
  cuda::CountReader reader;
  cuda::CountedCuts cuts(runner, requests, reader);
  const std::vector<std::int64_t> words = reader.wait(runner);
  EXPECT_TRUE(cuts.fit(words));
  return cuts.write({.words = words, .rows = as_known});
}

void expect_no_room_to_spare(const RowCountRef& rows) {
  EXPECT_FALSE(rows.poisoned());
  EXPECT_EQ(rows.capacity, rows.rows());
}

void expect_same_lists(const PairListRef& a, const PairListRef& b) {
  ASSERT_EQ(a.pairs.rows(), b.pairs.rows());
  EXPECT_EQ(copy_of(a.offset_begin, a.offsets + 1), copy_of(b.offset_begin, b.offsets + 1));
  EXPECT_EQ(copy_of(a.in, a.pairs.rows()), copy_of(b.in, b.pairs.rows()));
  EXPECT_EQ(copy_of(a.out, a.pairs.rows()), copy_of(b.out, b.pairs.rows()));
}

void expect_same_cut(const cuda::CutMap& mine, const cuda::CutMap& other,
                     const cuda::CutRequest& request) {
  if (request.tiles) {
    expect_same_tiles(mine.tiles(), other.tiles());
    if (request.is_centred) expect_same_tiles(mine.mirrored_tiles(), other.mirrored_tiles());
    EXPECT_EQ(mine.entries().rows(), other.entries().rows());
    expect_no_room_to_spare(mine.tiles().tiles);
    expect_no_room_to_spare(mine.entries());
    EXPECT_EQ(mine.tiles().in_rows.rows(), other.tiles().in_rows.rows());
    EXPECT_EQ(mine.tiles().out_rows.count, nullptr) << "the host knows";
  }
  if (request.pairs) {
    expect_same_lists(mine.pairs(), other.pairs());
    expect_no_room_to_spare(mine.pairs().pairs);
  }
}

PUMICE_DEVICE_TEST(DeviceCountedCuts, CutsThatAreCountedFirstAreThoseThatAreMadeAtOnce) {
  const auto runner = make_runner();
  const std::array<cuda::DeviceWindow, 3> windows{cuda::DeviceWindow(*runner, kCube),
                                                  cuda::DeviceWindow(*runner, kWide),
                                                  cuda::DeviceWindow(*runner, kHalving)};
  std::vector<Scene> scenes;
  for (const std::size_t cells : {700u, 0u, 31u, 1100u})
    scenes.emplace_back(*runner, cells);
  std::vector<cuda::CutRequest> requests;
  for (const Scene& scene : scenes)
    std::ranges::move(scene.requests(windows), std::back_inserter(requests));
  ASSERT_GT(requests.size(), std::size_t{kMaxTasks}) << "one batch takes what another found";
  const auto made = counted(*runner, requests);
  const auto at_once = cuda::cut_maps(*runner, requests);
  EXPECT_EQ(runner->record().code, kFine);
  ASSERT_EQ(made.size(), requests.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_cut(made[i], at_once[i], requests[i]);
  }
}

PUMICE_DEVICE_TEST(DeviceCountedCuts, AllIsCountedBeforeTheHostReadsAndWrittenAfterwards) {
  const auto runner = make_runner();
  const Mirror mirror(*runner, random_set(3, 700, 12, 3));
  const cuda::DeviceWindow window(*runner, kCube);
  const cuda::CutRequest map{.map = {mirror.ref(), mirror.ref(), &window}, .is_centred = true};
  for (const bool trains : {false, true}) {
    std::vector<cuda::CutRequest> requests{with_tiles(map, 128, 1), with_tiles(map, 64, 1)};
    if (trains) requests.push_back(with_pairs(map));
    std::size_t seen = runner->launches().size();
    const auto since = [&] {
      const Launches ran(runner->launches().begin() + static_cast<std::ptrdiff_t>(seen),
                         runner->launches().end());
      seen = runner->launches().size();
      return ran;
    };
    cuda::CountReader reader;
    cuda::CountedCuts cuts(*runner, requests, reader);
    Launches counts{"fill_ranges", "match_maps", "gray_keys_u32", "sort_small_u32", "cut_tiles"};
    if (trains) counts.emplace_back("count_pairs");
    EXPECT_EQ(since(), counts);
    const std::vector<std::int64_t> words = reader.wait(*runner);
    EXPECT_EQ(since(), Launches{"gather_words"});
    cuts.write({.words = words, .rows = as_known});
    EXPECT_EQ(since(), trains ? Launches({"write_tiles", "list_pairs"}) : Launches{"write_tiles"});
  }
}

PUMICE_DEVICE_TEST(DeviceCountedCuts, APoisonedSetIsHeardOfAndNothingIsWritten) {
  const auto runner = make_runner();
  const Mirror mirror(*runner, random_set(3, 300, 9, 4));
  const cuda::DeviceWindow window(*runner, kCube);
  CoordinateSetRef poisoned = mirror.ref();
  const auto poison = runner->count(kPoison);
  poisoned.rows.count = poison.data();
  const auto request = [&](const CoordinateSetRef& in, const CoordinateSetRef& out) {
    return with_pairs(with_tiles({.map = {in, out, &window}}, 128, 2));
  };
  const std::vector<cuda::CutRequest> requests{request(mirror.ref(), mirror.ref()),
                                               request(poisoned, mirror.ref()),
                                               request(mirror.ref(), poisoned)};
  cuda::CountReader reader;
  cuda::CountedCuts cuts(*runner, requests, reader);
  const std::vector<std::int64_t> words = reader.wait(*runner);
  EXPECT_FALSE(cuts.fit(words));
  EXPECT_THROW(cuts.write({.words = words, .rows = as_known}), InternalError);
  EXPECT_EQ(runner->record().code, kFine) << "whoever poisoned the set has said so";

  const auto sound = cuda::cut_maps(*runner, std::span(requests).first(1));
  ASSERT_EQ(words.size(), 9u);   // of each request tiles, entries and pairs
  EXPECT_EQ(std::vector(words.begin(), words.begin() + 3),
            (std::vector{sound[0].tiles().tiles.rows(), sound[0].entries().rows(),
                         sound[0].pairs().pairs.rows()}));
  EXPECT_EQ(std::vector(words.begin() + 3, words.end()), std::vector<std::int64_t>(6, kPoison));
  for (const std::size_t of : {1u, 2u}) {   // each alone too
    cuda::CountReader alone_reader;
    const cuda::CountedCuts alone(*runner, std::span(requests).subspan(of, 1), alone_reader);
    EXPECT_FALSE(alone.fit(alone_reader.wait(*runner)));
  }
  const auto made = counted(*runner, {requests[0]});
  expect_same_cut(made[0], sound[0], requests[0]);
}

}   // namespace
}   // namespace pumice::test
