// Passes of a network whose sets and maps are made when the pass begins, beside maps of the CPU: on
// other scans, on other paths, on scans that are too dense, and how much memory the maps take.
// Covers formats/pass_memory, and pass_ahead, pass_notes, cut_notes and counted_cuts of
// formats/cuda, on a device.
#include <pumice/formats/pass_memory.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/map_cache.hpp>

#include "coords/cells.hpp"
#include "formats/cuda/map_formats.hpp"
#include "formats/map_entries.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

constexpr std::int32_t kItems = 3;
const CoordinateBounds kBounds{axes(3, -40), axes(3, 400)};

CoordinateOptions options() {
  return {.batch_size = kItems, .bounds = kBounds};
}

CoordinateSetPtr random_scan(std::size_t count, std::int32_t extent, std::uint64_t seed) {
  Random random(seed);
  return CoordinateSet::create(
      tensor_of(distinct_cells(random_cells(count, 3, extent, random), random), 3), options());
}

/// A cube of sites `step` apart: of each 8 neighbouring ones a coarser level has one where `step`
/// is 1, and 8 where it is more.
CoordinateSetPtr cube(std::int32_t side, std::int32_t step) {
  Cells cells;
  for (std::int32_t i = 0; i < side * side * side; ++i)
    cells.push_back({0, step * (i % side), step * (i / side % side), step * (i / side / side)});
  return CoordinateSet::create(tensor_of(cells, 3), options());
}

KernelWindow halving(std::int32_t size, std::int32_t padding = 0) {
  return {.dimension = 3, .size = axes(3, size), .stride = axes(3, 2), .padding = axes(3, padding)};
}

const KernelWindow kCube = submanifold_window(3, axes(3, 3), axes(3, 1));

using Maps = std::vector<KernelMapPtr>;
using Followed = PassMemory::Followed;

/// Maps of a network: on the sites, down twice, once by cells and once by reach, up to sites of
/// before, and up to sites that are made.
Maps network(MapCache& cache, const CoordinateSetPtr& set) {
  Maps maps{cache.submanifold(set, kCube)};
  maps.push_back(cache.strided(set, halving(2), StridedOutputs::cell));
  const CoordinateSetPtr half = maps.back()->out();
  maps.push_back(cache.submanifold(half, kCube));
  maps.push_back(cache.strided(half, halving(3, 1), StridedOutputs::dilating));
  const CoordinateSetPtr quarter = maps.back()->out();
  maps.push_back(cache.submanifold(quarter, kCube));
  maps.push_back(cache.transposed(quarter, half, halving(3, 1)));
  maps.push_back(cache.generative(quarter, halving(2)));
  maps.push_back(cache.submanifold(set, submanifold_window(3, axes(3, 1), axes(3, 1))));
  return maps;
}

/// Asks for what convolutions, the gradients of their inputs and those of their weights run on.
void train(const Maps& maps) {
  for (const KernelMapPtr& map : maps) {
    cuda::MapFormats& formats = cuda::MapFormats::of(*map);
    for (const bool is_transposed : {false, true})
      formats.tiles(is_transposed, {}, cuda::OffsetOrder::any);
    formats.pairs(false);
  }
}

/// A pass over a set, as layers make it.
class Pass {
 public:
  Pass(const PassMemory& memory, const CoordinateSetPtr& set, StreamView stream,
       Followed followed = Followed::by_gradients)
      : root_(CoordinateSet::copy_to(set, stream)) {
    memory.begin(cache_, root_, stream, followed);
  }
  const CoordinateSetPtr& root() const { return root_; }
  MapCache& cache() { return cache_; }
  Maps trained() {
    Maps maps = network(cache_, root_);
    train(maps);
    return maps;
  }
  /// The same where nobody may wait.
  Maps trained_without_waiting() {
    const RefusedWaits refused;
    return trained();
  }

 private:
  MapCache cache_;
  CoordinateSetPtr root_;
};

void expect_same(const Maps& there, const Maps& here, StreamView stream) {
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    SCOPED_TRACE("map " + std::to_string(i));
    EXPECT_EQ(there[i]->in()->size(), here[i]->in()->size());
    EXPECT_EQ(there[i]->out()->size(), here[i]->out()->size());
    const Entries entries = entries_of(*here[i]);
    EXPECT_EQ(listed_entries(*there[i], stream), entries);
    EXPECT_EQ(tiled_entries(*there[i], false, stream), entries);
    if (there[i]->in() != there[i]->out()) {   // else offsets are told from the other end
      EXPECT_EQ(tiled_entries(*there[i], true, stream), entries);
    }
  }
}

void expect_right(Pass& pass, const Maps& maps, const CoordinateSetPtr& set, StreamView stream) {
  MapCache here;
  expect_same(maps, network(here, set), stream);
  EXPECT_EQ(pass.cache().entries().size(), maps.size()) << "each map once";
  wait(stream);   // which raises what was reported
}

/// Counts the bytes that are handed out, and has none beyond `most`.
class CountedMemory final : public Allocator {
 public:
  explicit CountedMemory(std::shared_ptr<Allocator> source) : source_(std::move(source)) {}
  void* allocate(std::size_t bytes, StreamView stream) override {
    if (now_ + static_cast<std::int64_t>(bytes) > most) throw Error("memory is short");
    now_ += static_cast<std::int64_t>(bytes);
    return source_->allocate(bytes, stream);
  }
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    now_ -= static_cast<std::int64_t>(bytes);
    source_->deallocate(data, bytes, stream);
  }
  std::int64_t now() const { return now_; }

  std::int64_t most = std::numeric_limits<std::int64_t>::max();

 private:
  std::shared_ptr<Allocator> source_;
  std::int64_t now_ = 0;
};

bool has_what_gradients_need(const Maps& maps) {
  return std::ranges::all_of(maps, [](const KernelMapPtr& map) {
    cuda::MapFormats& formats = cuda::MapFormats::of(*map);
    return formats.missing({.tiles = {formats.tiles_wanted(true, {})}, .pairs = true}).empty();
  });
}

TEST(PassMemoryGpu, from_the_second_pass_on_nobody_waits_after_the_beginning) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  {
    const CoordinateSetPtr set = random_scan(300, 9, 1);
    Pass first(memory, set, stream);
    EXPECT_THROW(Pass(PassMemory(), set, stream).trained_without_waiting(), UserError);
    expect_right(first, first.trained(), set, stream);
  }
  for (const std::size_t count : {1u, 31u, 33u, 300u, 900u, 64u}) {
    SCOPED_TRACE(count);
    const CoordinateSetPtr set = random_scan(count, 9, 10 + count);
    Pass pass(memory, set, stream);
    expect_right(pass, pass.trained_without_waiting(), set, stream);
  }
}

TEST(PassMemoryGpu, rows_come_in_the_order_of_a_pass_that_waits) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  Pass(memory, random_scan(300, 9, 1), stream).trained();
  const CoordinateSetPtr set = random_scan(250, 9, 2);
  Pass ahead(memory, set, stream), waiting(PassMemory(), set, stream);
  const Maps made = ahead.trained_without_waiting(), expected = waiting.trained();
  for (std::size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(cells_there(made[i]->out(), stream), cells_there(expected[i]->out(), stream)) << i;
    EXPECT_EQ(made[i]->out()->layout(), expected[i]->out()->layout()) << i;
    EXPECT_EQ(made[i]->out()->options().stride, expected[i]->out()->options().stride) << i;
    const auto lists = [&](const KernelMap& map) {
      const PairListRef list = cuda::MapFormats::of(map).pairs(false);
      const auto begin = copy_to_host(list.offset_begin, std::int64_t{list.offsets} + 1, stream);
      return std::tuple(begin, copy_to_host(list.in, begin.back(), stream),
                        copy_to_host(list.out, begin.back(), stream));
    };
    EXPECT_EQ(lists(*made[i]), lists(*expected[i])) << "gradients of weights have other bits";
  }
}

TEST(PassMemoryGpu, a_scan_that_is_too_dense_is_made_one_by_one_and_learned) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr crowd = cube(14, 1), apart = cube(12, 5);
  Pass(memory, crowd, stream).trained();   // 2744 sites with 343 cells of two
  {
    Pass pass(memory, apart, stream);   // 1728 with as many
    EXPECT_FALSE(has_trouble(stream)) << "that the room did not suffice is nobody's trouble";
    const Maps maps = pass.trained();
    EXPECT_EQ(maps[1]->out()->size(), apart->size());
    expect_right(pass, maps, apart, stream);
  }
  for (const CoordinateSetPtr& set : {apart, crowd, apart}) {   // whose room is not lost at once
    Pass pass(memory, set, stream);
    expect_right(pass, pass.trained_without_waiting(), set, stream);
  }
}

TEST(PassMemoryGpu, another_path_waits_for_what_is_new_and_forgets_what_nobody_asks_for) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  const KernelWindow other = halving(3);
  Pass(memory, set, stream).trained();
  for (int turn = 0; turn < 4; ++turn) {
    Pass pass(memory, set, stream);
    const auto ask = [&] {
      return Maps{pass.cache().submanifold(pass.root(), kCube),
                  pass.cache().strided(pass.root(), other, StridedOutputs::cell)};
    };
    Maps maps;
    if (turn == 0) {
      maps = ask();
    } else {
      const RefusedWaits refused;
      maps = ask();
    }
    train(maps);
    MapCache here;
    expect_same(maps,
                {here.submanifold(set, kCube), here.strided(set, other, StridedOutputs::cell)},
                stream);
    EXPECT_EQ(pass.cache().entries().size(), 2u) << "what nobody asked for is no map of the pass";
    if (turn < 2) continue;   // asked for, it would be remembered
    const RefusedWaits refused;
    EXPECT_THROW(pass.cache().strided(pass.root(), halving(2), StridedOutputs::cell), UserError)
        << "two passes made it in vain, and no third one";
  }
}

TEST(PassMemoryGpu, two_networks_on_one_set_are_one_pass) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory first, second;
  const KernelWindow three = {.dimension = 3, .size = axes(3, 3), .stride = axes(3, 3)};
  const auto both = [&](Pass& pass) {
    Maps maps = pass.trained();
    second.begin(pass.cache(), pass.root(), stream, Followed::by_gradients);   // finds maps there
    maps.push_back(pass.cache().strided(pass.root(), three, StridedOutputs::cell));
    train({maps.back()});
    return maps;
  };
  const auto check = [&](const Maps& maps, const CoordinateSetPtr& set) {
    MapCache here;
    Maps expected = network(here, set);
    expected.push_back(here.strided(set, three, StridedOutputs::cell));
    expect_same(maps, expected, stream);
  };
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const CoordinateSetPtr set = random_scan(300, 9, seed);
    Pass pass(first, set, stream);
    if (seed == 1) {
      check(both(pass), set);
    } else {
      std::optional<RefusedWaits> refused(std::in_place);
      const Maps maps = both(pass);
      refused.reset();
      check(maps, set);
    }
  }
  // The second network alone begins with a memory of its own.
  const CoordinateSetPtr set = random_scan(300, 9, 4);
  Pass alone(second, set, stream);
  expect_right(alone, alone.trained(), set, stream);
}

TEST(PassMemoryGpu, gradients_that_come_after_the_next_pass_began_are_remembered) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  for (int turn = 0; turn < 4; ++turn) {   // batches of two, whose gradients come in the end
    Pass one(memory, set, stream), two(memory, set, stream);
    Maps of_one = network(one.cache(), one.root()), of_two = network(two.cache(), two.root());
    for (Maps* maps : {&of_one, &of_two}) {
      if (turn > 0) {
        EXPECT_TRUE(has_what_gradients_need(*maps));
      }
    }
    train(of_one);
    train(of_two);
  }
  wait(stream);
}

TEST(PassMemoryGpu, trouble_of_the_sites_is_raised_once_and_forgotten) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  Pass(memory, set, stream).trained();
  Tensor cells({33, 4}, DType::i32);
  std::fill_n(cells.data<std::int32_t>(), cells.elements(), 0);   // 33 times the same
  const Tensor there = copy_to(stream, cells);
  const CoordinateSetPtr repeated = CoordinateSet::create(there.view(), options());
  MapCache cache;
  const std::string message =
      message_of([&] { memory.begin(cache, repeated, stream, Followed::by_gradients); });
  EXPECT_NE(message.find("33"), std::string::npos) << message;
  Pass pass(memory, set, stream);
  expect_right(pass, pass.trained_without_waiting(), set, stream);
}

TEST(PassMemoryGpu, sites_that_layers_cannot_work_on_are_refused_by_the_layer) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  Pass(memory, random_scan(300, 9, 1), stream).trained();
  const CoordinateSetPtr flat =
      CoordinateSet::create(tensor_of({{0, 1, 2}, {0, 3, 4}}, 2), {.batch_size = 1});
  MapCache cache;
  const CoordinateSetPtr there = CoordinateSet::copy_to(flat, stream);
  memory.begin(cache, there, stream, Followed::by_gradients);
  EXPECT_NE(message_of([&] { cache.submanifold(there, kCube); }).find("dimension"),
            std::string::npos);
}

TEST(PassMemoryGpu, no_rows_leave_what_is_remembered) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1), none = random_scan(0, 9, 2);
  Pass(memory, set, stream).trained();
  for (int turn = 0; turn < 4; ++turn) {
    Pass pass(memory, none, stream);
    expect_right(pass, pass.trained(), none, stream);
  }
  Pass pass(memory, set, stream);
  expect_right(pass, pass.trained_without_waiting(), set, stream);
}

TEST(PassMemoryGpu, a_pass_that_must_not_wait_is_left_alone) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  Pass(memory, set, stream).trained();
  const RefusedWaits refused;
  Pass pass(memory, set, stream);
  EXPECT_EQ(pass.cache().ahead(), nullptr);
  EXPECT_THROW(pass.trained(), UserError);
}

TEST(PassMemoryGpu, layers_that_make_no_sets_never_wait) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  for (int turn = 0; turn < 3; ++turn) {
    const CoordinateSetPtr there = CoordinateSet::copy_to(set, stream);
    std::optional<RefusedWaits> refused;
    MapCache cache;
    memory.begin(cache, there, stream, Followed::by_gradients);
    refused.emplace();
    const Maps maps{cache.submanifold(there, kCube)};
    train(maps);
    refused.reset();
    MapCache here;
    expect_same(maps, {here.submanifold(set, kCube)}, stream);
  }
}

TEST(PassMemoryGpu, threads_with_streams_of_their_own_share_a_memory) {
  PUMICE_NEEDS_GPU();
  const PassMemory memory;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&memory, thread] {
      const Stream stream(kGpu);
      for (std::uint64_t turn = 0; turn < 3; ++turn) {
        const CoordinateSetPtr set = random_scan(100 + 100 * thread, 9, 10 * thread + turn);
        Pass pass(memory, set, stream);
        expect_right(pass, pass.trained(), set, stream);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST(PassMemoryGpu, a_handful_of_sites_far_apart_gives_large_scans_no_more_room) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto counted = std::make_shared<CountedMemory>(default_allocator(kGpu));
  const AllocatorScope scope(kGpu, counted);
  const CoordinateSetPtr crowd = cube(14, 1), handful = cube(3, 9);
  const auto bytes_of_pass = [&](const PassMemory& memory) {
    const std::int64_t before = counted->now();
    Pass pass(memory, crowd, stream);
    const Maps maps = pass.trained_without_waiting();
    const std::int64_t bytes = counted->now() - before;
    expect_right(pass, maps, crowd, stream);
    return bytes;
  };
  const PassMemory of_crowds, of_both;
  Pass(of_crowds, crowd, stream).trained();
  for (int turn = 0; turn < 2; ++turn)
    Pass(of_both, handful, stream).trained();
  EXPECT_THROW(Pass(of_both, crowd, stream).trained_without_waiting(), UserError)
      << "a scan a hundred times as large is the first of its kind";
  Pass(of_both, crowd, stream).trained();
  Pass again(of_both, handful, stream);
  expect_right(again, again.trained_without_waiting(), handful, stream);
  EXPECT_EQ(bytes_of_pass(of_both), bytes_of_pass(of_crowds));
}

TEST(PassMemoryGpu, evaluations_leave_what_training_remembers_and_make_nothing_of_it) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  Pass(memory, set, stream).trained();
  for (int turn = 0; turn < 5; ++turn) {
    Pass pass(memory, set, stream, Followed::by_nothing);
    std::optional<RefusedWaits> refused;
    if (turn > 0) refused.emplace();
    EXPECT_FALSE(has_what_gradients_need(network(pass.cache(), pass.root())));
  }
  Pass pass(memory, set, stream);
  EXPECT_TRUE(has_what_gradients_need(network(pass.cache(), pass.root())));
  expect_right(pass, pass.trained_without_waiting(), set, stream);
}

TEST(PassMemoryGpu, a_stem_may_see_several_inputs_before_the_rest_of_the_network) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<CoordinateSetPtr> sets;
    std::vector<std::unique_ptr<Pass>> passes;
    for (std::uint64_t frame = 0; frame < 5; ++frame) {
      sets.push_back(random_scan(300, 9, frame));
      passes.push_back(std::make_unique<Pass>(memory, sets.back(), stream));
      (void)passes.back()->cache().submanifold(passes.back()->root(), kCube);
    }
    for (std::size_t frame = 0; frame < passes.size(); ++frame) {
      Pass& pass = *passes[frame];
      expect_right(pass, turn == 0 ? pass.trained() : pass.trained_without_waiting(), sets[frame],
                   stream);
    }
  }
}

TEST(PassMemoryGpu, where_memory_is_short_the_next_pass_is_a_first_one) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const auto counted = std::make_shared<CountedMemory>(default_allocator(kGpu));
  const AllocatorScope scope(kGpu, counted);
  const CoordinateSetPtr set = random_scan(300, 9, 1);
  const CoordinateSetPtr root = CoordinateSet::copy_to(set, stream);
  Pass(memory, set, stream).trained();
  for (const std::int64_t more : {0, 100'000, 200'000}) {
    counted->most = counted->now() + more;
    MapCache cache;
    EXPECT_THROW(memory.begin(cache, root, stream, Followed::by_gradients), Error) << more;
    counted->most = std::numeric_limits<std::int64_t>::max();
    EXPECT_THROW(Pass(memory, set, stream).trained_without_waiting(), UserError) << more;
    Pass pass(memory, set, stream);
    expect_right(pass, pass.trained(), set, stream);
  }
  wait(stream);
}

TEST(PassMemoryGpu, maps_of_a_second_pass_take_what_is_in_use) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PassMemory memory;
  const CoordinateSetPtr set = random_scan(6000, 40, 1);
  const auto counted = std::make_shared<CountedMemory>(default_allocator(kGpu));
  const AllocatorScope scope(kGpu, counted);
  const CoordinateSetPtr root = CoordinateSet::copy_to(set, stream);
  std::int64_t of_first = 0, of_second = 0;
  for (std::int64_t* const bytes : {&of_first, &of_second}) {
    const std::int64_t before = counted->now();
    Pass pass(memory, root, stream);
    const Maps maps = pass.trained();
    *bytes = counted->now() - before;
    if (bytes == &of_first) continue;
    std::int64_t in_use = 0;
    for (const KernelMapPtr& map : maps) {
      const bool is_identity = map->window().volume() == 1;
      cuda::MapFormats& formats = cuda::MapFormats::of(*map);
      const PairListRef list = formats.pairs(false);
      const std::int64_t pairs = copy_to_host(list.pairs.count, is_identity ? 0 : 1, stream).empty()
                                     ? map->in()->size()
                                     : copy_to_host(list.pairs.count, 1, stream).front();
      EXPECT_EQ(list.pairs.capacity, pairs);
      in_use += 8 * pairs;
      for (const auto& [wanted, entries] : formats.asked()) {
        const std::int64_t count = copy_to_host(entries.count, 1, stream).front();
        EXPECT_EQ(entries.capacity, count);
        in_use += count * (4 * wanted.cut.tile_rows + 8) + 4 * map->out()->size();
      }
    }
    // Beside that: sets with a quarter more than they need and a table of their blocks, and places
    // of tiles.
    EXPECT_LT(of_second, in_use + in_use / 4 + 200 * set->size());
  }
  EXPECT_LT(of_second, of_first / 2);
  wait(stream);
}

}   // namespace
}   // namespace pumice::test
