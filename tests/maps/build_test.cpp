// Kernel maps of random problems against loops over all cells and offsets, and both ways of
// building them against each other.
#include <pumice/maps/build.hpp>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>

#include "maps/cpu/block_match.hpp"
#include "maps/cpu/row_search.hpp"
#include "maps/map_invariants.hpp"
#include "maps/map_problem.hpp"

namespace pumice::test {
namespace {

using brute_force::Cell;
using brute_force::Cells;

constexpr std::uint64_t kProblems = 900;   // times six kinds of map

/// The problem's number, dimension and windows go with every failure.
#define PUMICE_TRACE(seed, window) \
  SCOPED_TRACE(::testing::Message() << "seed " << seed << ": " << to_string(window))

std::set<Cell> distinct(const Cells& cells) {
  return {cells.begin(), cells.end()};
}

/// A spatial shape that holds `cells`, sometimes with room to spare.
Axes shape_around(const Cells& cells, int dimension, Random& random) {
  Axes shape = axes(dimension, 1);
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    std::int64_t extent = 1;
    for (const Cell& cell : cells)
      extent = std::max(extent, cell[at + 1] + 1);
    shape[at] = static_cast<std::int32_t>(extent + random.integer(0, 3));
  }
  return shape;
}

/// Whether the output would have a cell on every axis.
bool leaves_outputs(const Axes& shape, const KernelWindow& window) {
  if (window.shape == KernelShape::custom) return true;
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    if (shape[at] + 2 * window.padding[at] <= window.dilation[at] * (window.size[at] - 1)) {
      return false;
    }
  }
  return true;
}

void expect_same_lists(const KernelPairs& left, const KernelPairs& right) {
  const auto same = [](const auto& a, const auto& b) {
    return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
  };
  ASSERT_TRUE(same(left.offset_begin, right.offset_begin));
  EXPECT_TRUE(same(left.in, right.in));
  EXPECT_TRUE(same(left.out, right.out));
}

/// Where the outputs of a strided window over `fine` lie, with two cells to spare on every side.
Scatter coarsened(Scatter fine, const KernelWindow& window) {
  for (std::size_t at = 0; at < static_cast<std::size_t>(fine.dimension); ++at) {
    fine.origin[at] = fine.origin[at] / window.stride[at] - 2;
    fine.extent[at] = fine.extent[at] / window.stride[at] + 4;
  }
  return fine;
}

TEST(SubmanifoldMap, MatchesTheReferenceOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    Random random(seed, 1);
    const int dimension = static_cast<int>(1 + seed % 4);
    const Cells cells = strew(random_scatter(dimension, false, random), random);
    const auto set = make_set(cells, dimension);
    KernelWindow window = random_window(dimension, 1, random);
    if (window.shape == KernelShape::hypercube && seed % 3 == 0) {
      window = submanifold_window(dimension, window.size, window.dilation);
    }
    PUMICE_TRACE(seed, window);
    const auto map = submanifold_map(set, window);
    EXPECT_EQ(map->out(), set);
    expect_well_formed(*map);
    EXPECT_EQ(pair_set(map->view()), brute_force::pairs(cells, cells, kernel_of(window)));
  }
}

TEST(MapBetween, MatchesTheReferenceOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    Random random(seed, 2);
    const int dimension = static_cast<int>(1 + seed % 4);
    const Scatter scatter = random_scatter(dimension, false, random);
    const KernelWindow window = random_window(dimension, 3, random);
    Scatter coarser = coarsened(scatter, window);
    coarser.batches = random.integer(1, 3);
    PUMICE_TRACE(seed, window);
    const Cells in = strew(scatter, random);
    const Cells out = strew(coarser, random);
    const auto map = map_between(make_set(in, dimension), make_set(out, dimension), window);
    expect_well_formed(*map);
    EXPECT_EQ(pair_set(map->view()), brute_force::pairs(in, out, kernel_of(window)));
  }
}

TEST(TransposedMap, MatchesTheReferenceOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    Random random(seed, 3);
    const int dimension = static_cast<int>(1 + seed % 4);
    const Scatter fine_scatter = random_scatter(dimension, false, random);
    const KernelWindow window = random_window(dimension, 3, random);
    const Scatter coarser = coarsened(fine_scatter, window);
    PUMICE_TRACE(seed, window);
    const Cells coarse = strew(coarser, random);
    const Cells fine = strew(fine_scatter, random);
    const auto map = transposed_map(make_set(coarse, dimension), make_set(fine, dimension), window);
    expect_well_formed(*map);
    EXPECT_EQ(pair_set(map->view()),
              brute_force::transposed_pairs(coarse, fine, kernel_of(window)));
  }
}

TEST(StridedMap, MatchesTheReferenceOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < 2 * kProblems; ++seed) {
    Random random(seed, 4);
    const int dimension = static_cast<int>(1 + seed % 4);
    const bool bounded = random.integer(0, 2) == 0;
    const Cells cells = strew(random_scatter(dimension, bounded, random), random);
    KernelWindow window = random_window(dimension, 3, random);
    if (seed % 8 == 0) {   // the commonest one has a way of its own
      window = {.dimension = dimension, .size = axes(dimension, 2), .stride = axes(dimension, 2)};
    }
    const auto outputs = seed % 16 < 8 ? StridedOutputs::cell : StridedOutputs::dilating;
    CoordinateOptions options;
    std::optional<brute_force::Extents> out_shape;
    if (bounded) {
      options.spatial_shape = shape_around(cells, dimension, random);
      if (!leaves_outputs(*options.spatial_shape, window)) continue;
      out_shape = extents_of(strided_shape(*options.spatial_shape, window), dimension);
    }
    PUMICE_TRACE(seed, window);
    const auto map = strided_map(make_set(cells, dimension, options), window, outputs);
    expect_well_formed(*map);
    const brute_force::Kernel kernel = kernel_of(window);
    const Cells out = cells_of(*map->out());
    EXPECT_EQ(distinct(out), outputs == StridedOutputs::cell
                                 ? brute_force::cell_outputs(cells, kernel.stride, out_shape)
                                 : brute_force::dilating_outputs(cells, kernel, out_shape));
    EXPECT_TRUE(map->out()->in_key_order());
    EXPECT_EQ(map->out()->spatial_shape().has_value(), bounded);
    for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
      EXPECT_EQ(map->out()->stride()[at], window.stride[at]);
    }
    EXPECT_EQ(pair_set(map->view()), brute_force::pairs(cells, out, kernel));
  }
}

TEST(GenerativeMap, MatchesTheReferenceOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    Random random(seed, 5);
    const int dimension = static_cast<int>(1 + seed % 4);
    const bool bounded = random.integer(0, 2) == 0;
    Scatter scatter = random_scatter(dimension, bounded, random);
    for (auto& origin : scatter.origin)
      origin = origin > 1000 || origin < -1000 ? 7 : origin;
    const Cells coarse = strew(scatter, random);
    const KernelWindow window = random_window(dimension, 3, random);
    CoordinateOptions options;
    options.stride = Axes{6, 6, 6, 6};
    std::optional<brute_force::Extents> out_shape;
    if (bounded) {
      options.spatial_shape = shape_around(coarse, dimension, random);
      bool leaves = true;
      for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
        const std::int32_t least = (*options.spatial_shape)[at] * window.stride[at] -
                                   window.stride[at] - 2 * window.padding[at] +
                                   window.dilation[at] * (window.size[at] - 1);
        leaves = leaves && (window.shape == KernelShape::custom || least >= 0);
      }
      if (!leaves) continue;
      out_shape = extents_of(transposed_shape(*options.spatial_shape, window), dimension);
    }
    PUMICE_TRACE(seed, window);
    const auto map = generative_map(make_set(coarse, dimension, options), window);
    expect_well_formed(*map);
    const brute_force::Kernel kernel = kernel_of(window);
    const Cells fine = cells_of(*map->out());
    EXPECT_EQ(distinct(fine), brute_force::generated_outputs(coarse, kernel, out_shape));
    for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
      EXPECT_EQ(map->out()->stride()[at], 6 / window.stride[at]);
    }
    EXPECT_EQ(pair_set(map->view()), brute_force::transposed_pairs(coarse, fine, kernel));
  }
}

TEST(BlockMatch, GivesTheListsOfTheRowSearch) {
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    Random random(seed, 6);
    const int dimension = static_cast<int>(1 + seed % 4);
    Scatter scatter = random_scatter(dimension, false, random);
    const auto in = make_set(strew(scatter, random), dimension);
    scatter.origin[0] += random.integer(-5, 5);
    const auto out = make_set(strew(scatter, random), dimension);
    const KernelWindow window = random_window(dimension, 3, random);
    PUMICE_TRACE(seed, window);
    ASSERT_TRUE(can_match_blocks(window));
    for (const Reach reach : {Reach::out_to_in, Reach::in_to_out}) {
      expect_same_lists(match_blocks(*in, *out, window, reach),
                        search_rows(*in, *out, window, reach));
    }
  }
}

TEST(BlockMatch, DeclinesTablesThatWouldNotFitAndTheRowSearchTakesOver) {
  const KernelWindow window{.dimension = 1, .size = {70000, 1, 1, 1}};
  EXPECT_FALSE(can_match_blocks(window));
  const auto set = make_set({{0, -65000}, {0, 0}, {0, 3}, {0, 69999}, {0, 70003}}, 1);
  const auto map = submanifold_map(set, window);
  expect_well_formed(*map);
  EXPECT_EQ(map->pairs(), 5 + 6);   // each with itself, and six with one less than 70,000 on
}

TEST(Maps, OfManySitesMatchTheReference) {
  Random random(7);
  Cells cells = strew({.dimension = 3,
                       .size = 90000,
                       .batches = 2,
                       .origin = {-24, -24, -24},
                       .extent = {48, 48, 48}},
                      random);
  ASSERT_GE(cells.size(), 65537u);
  cells.resize(65537);
  KernelWindow window = submanifold_window(3, {3, 3, 3}, {1, 1, 1});
  window.shape = KernelShape::hypercross;
  const auto map = submanifold_map(make_set(cells, 3), window);
  expect_well_formed(*map);
  EXPECT_TRUE(map->view().has_identity_offset);
  EXPECT_EQ(pair_set(map->view()), brute_force::pairs(cells, cells, kernel_of(window)));
}

TEST(Maps, AreTheSameBitsForAnyNumberOfThreads) {
  Random random(8);
  const Scatter scatter{.dimension = 3,
                        .size = 60000,
                        .batches = 2,
                        .origin = {-64, -64, -10},
                        .extent = {128, 128, 20}};
  const auto set = make_set(strew(scatter, random), 3);
  const KernelWindow same = submanifold_window(3, {3, 3, 3}, {1, 1, 1});
  const KernelWindow strided{.stride = {2, 2, 1}, .padding = {1, 1, 1}};
  const KernelWindow halving{.size = {2, 2, 2}, .stride = {2, 2, 2}};
  std::vector<KernelMapPtr> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    std::vector<KernelMapPtr> maps{
        submanifold_map(set, same), strided_map(set, strided, StridedOutputs::dilating),
        strided_map(set, strided, StridedOutputs::cell),
        strided_map(set, halving, StridedOutputs::cell), generative_map(set, halving)};
    maps.push_back(transposed_map(maps[1]->out(), set, strided));
    if (first.empty()) first = maps;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const KernelMapView a = first[i]->view();
      const KernelMapView b = maps[i]->view();
      EXPECT_TRUE(first[i]->out()->same_rows(*maps[i]->out())) << i;
      EXPECT_TRUE(std::equal(a.offset_begin.begin(), a.offset_begin.end(), b.offset_begin.begin(),
                             b.offset_begin.end()))
          << i;
      EXPECT_TRUE(std::equal(a.in.begin(), a.in.end(), b.in.begin(), b.in.end())) << i;
      EXPECT_TRUE(std::equal(a.out.begin(), a.out.end(), b.out.begin(), b.out.end())) << i;
    }
  }
  set_threads(0);
}

TEST(Maps, OfKernelsTwoByTwoAreSortedOnBothSides) {
  Random random(9);
  const auto set = make_set(
      strew({.dimension = 3, .size = 500, .origin = {-9, -9, -9}, .extent = {18, 18, 18}}, random),
      3);
  const KernelWindow halving{.size = {2, 2, 2}, .stride = {2, 2, 2}};
  const auto down = strided_map(set, halving, StridedOutputs::cell);
  EXPECT_TRUE(down->view().sorted_by_in);
  EXPECT_EQ(down->pairs(), set->size());
  const auto up = transposed_map(down->out(), set, halving);
  EXPECT_EQ(pair_set(up->view()), pair_set(transposed(down->view())));
}

TEST(Maps, OfOneOffsetThatGoesNowhereAreTheIdentity) {
  Random random(10);
  for (const bool in_key_order : {false, true}) {
    const auto set = make_set(strew({.dimension = 2,
                                     .size = 40000,
                                     .origin = {-99, -99},
                                     .extent = {198, 198},
                                     .in_key_order = in_key_order},
                                    random),
                              2);
    const auto map = submanifold_map(set, submanifold_window(2, {1, 1}, {1, 1}));
    expect_well_formed(*map);
    EXPECT_TRUE(map->view().has_identity_offset);
    EXPECT_TRUE(map->view().sorted_by_in);
    EXPECT_EQ(map->pairs(), set->size());
    // The same offset somewhere else is not.
    const auto aside = submanifold_map(
        set, {.dimension = 2, .shape = KernelShape::custom, .custom_offsets = {Axes{1, 0}}});
    EXPECT_LT(aside->pairs(), set->size());
  }
}

TEST(Maps, CountTheirPairsBesideARoomForThem) {
  const auto set = make_set({{0, 5}, {0, 0}, {0, 1}, {0, 2}}, 1);
  const auto map = submanifold_map(set, submanifold_window(1, {3}, {1}));
  EXPECT_TRUE(map->pair_count().host_knows());
  EXPECT_EQ(map->pair_count().capacity(), 8);
  EXPECT_EQ(map->pairs(), 8);
  EXPECT_EQ(map->view().in.size(), 8u);

  // As a device would fill it: room for ten, eight of them in use.
  const auto pairs_in_use = [&](std::int64_t count) {
    KernelPairs pairs;
    pairs.offset_begin = Buffer<std::int64_t>(4);
    std::copy_n(std::array<std::int64_t, 4>{0, 2, 6, 8}.begin(), 4, pairs.offset_begin.data());
    pairs.in = Buffer<std::int32_t>(10);
    pairs.out = Buffer<std::int32_t>(10);
    std::ranges::copy(map->view().in, pairs.in.data());
    std::ranges::copy(map->view().out, pairs.out.data());
    pairs.count = RowCount::on_device(std::make_shared<std::int64_t>(count), 10, {});
    return pairs;
  };
  const KernelMap roomy(map->window(), set, set, pairs_in_use(8), true);
  EXPECT_EQ(roomy.pairs(), 8);
  EXPECT_EQ(roomy.view().in.size(), 8u);
  EXPECT_EQ(roomy.view().out.size(), 8u);
  EXPECT_THROW(KernelMap(map->window(), set, set, pairs_in_use(7), true), InternalError);
  EXPECT_THROW(KernelMap(map->window(), set, set, pairs_in_use(11), true), UserError);
}

TEST(Maps, OfSetsWithDeclaredBoundsAreThoseOfTheirCoordinates) {
  Random random(12);
  const Cells cells = strew(
      {.dimension = 3, .size = 700, .batches = 2, .origin = {-7, -7, -7}, .extent = {15, 15, 15}},
      random);
  const auto measured = make_set(cells, 3);
  const auto declared = make_set(
      cells, 3, {.batch_size = 2, .bounds = CoordinateBounds{axes(3, -500), axes(3, 500)}});
  EXPECT_NE(measured->layout(), declared->layout());
  const KernelWindow window = submanifold_window(3, {3, 3, 3}, {1, 1, 1});
  EXPECT_EQ(pair_set(submanifold_map(declared, window)->view()),
            pair_set(submanifold_map(measured, window)->view()));
  for (const auto outputs : {StridedOutputs::dilating, StridedOutputs::cell}) {
    const KernelWindow halving{.size = {3, 3, 3}, .stride = {2, 2, 2}, .padding = {1, 1, 1}};
    const auto out = strided_set(declared, halving, outputs);
    EXPECT_EQ(distinct(cells_of(*out)),
              distinct(cells_of(*strided_set(measured, halving, outputs))));
    EXPECT_FALSE(out->options().bounds);
    EXPECT_EQ(pair_set(map_between(declared, out, halving)->view()),
              pair_set(map_between(measured, out, halving)->view()));
  }
}

TEST(TransposedView, SwapsSidesAndKeepsOffsets) {
  const auto set = make_set({{0, 5}, {0, 0}, {0, 1}, {0, 2}}, 1);
  const KernelWindow window{.dimension = 1, .size = {2, 1, 1, 1}, .stride = {2, 1, 1, 1}};
  const auto map = strided_map(set, window, StridedOutputs::dilating);
  const KernelMapView there = map->view();
  const KernelMapView back = transposed(there);
  EXPECT_EQ(back.in_rows, there.out_rows);
  EXPECT_EQ(back.out_rows, there.in_rows);
  EXPECT_EQ(back.in.data(), there.out.data());
  EXPECT_EQ(back.out.data(), there.in.data());
  EXPECT_EQ(back.in_order.data(), there.out_order.data());
  EXPECT_EQ(back.out_order.data(), there.in_order.data());
  EXPECT_EQ(back.sorted_by_in, there.sorted_by_out);
  EXPECT_EQ(back.sorted_by_out, there.sorted_by_in);
  EXPECT_EQ(back.offset_begin.data(), there.offset_begin.data());
}

TEST(StridedSet, CoversTheRowsOfTheExampleInTheHeader) {
  // in = out * 2 - 1 + offset: input 3 is reached from output 1 (offset 2) and 2 (offset 0).
  const auto set = make_set({{0, 3}}, 1);
  const KernelWindow window{
      .dimension = 1, .size = {3, 1, 1, 1}, .stride = {2, 1, 1, 1}, .padding = {1, 0, 0, 0}};
  const auto out = strided_set(set, window, StridedOutputs::dilating);
  EXPECT_EQ(cells_of(*out), (Cells{{0, 1}, {0, 2}}));
  EXPECT_EQ(cells_of(*strided_set(set, window, StridedOutputs::cell)), (Cells{{0, 1}}));
}

}   // namespace
}   // namespace pumice::test
