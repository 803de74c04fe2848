// A network's maps are built once, and found again by what they were made from.
#include <pumice/maps/map_cache.hpp>

#include <gtest/gtest.h>

#include "maps/map_problem.hpp"

namespace pumice::test {
namespace {

const KernelWindow kHalving{.size = {2, 2, 2}, .stride = {2, 2, 2}};

TEST(MapCache, BuildsAMapOnceForASetAndAWindow) {
  const auto set = make_set({{0, 1, 2, 3}, {0, 1, 2, 4}}, 3);
  const auto same_sites = make_set({{0, 1, 2, 3}, {0, 1, 2, 4}}, 3);
  const KernelWindow window = submanifold_window(3, {3, 3, 3}, {1, 1, 1});
  MapCache cache;
  const auto map = cache.submanifold(set, window);
  EXPECT_EQ(cache.submanifold(set, window), map);
  EXPECT_EQ(cache.built(), 1);
  EXPECT_NE(cache.submanifold(same_sites, window), map) << "another set, whatever it holds";
  EXPECT_NE(cache.submanifold(set, submanifold_window(3, {3, 3, 3}, {2, 1, 1})), map);
  EXPECT_EQ(cache.built(), 3);
  EXPECT_EQ(cache.maps().front(), map);
  EXPECT_GT(cache.build_ms(), 0);
}

TEST(MapCache, TellsKindsOfMapsApart) {
  const auto set = make_set({{0, 1, 2, 3}, {0, 1, 2, 4}}, 3);
  MapCache cache;
  const auto cells = cache.strided(set, kHalving, StridedOutputs::cell);
  const auto dilating = cache.strided(set, kHalving, StridedOutputs::dilating);
  EXPECT_NE(cells, dilating);
  const auto generated = cache.generative(set, kHalving);
  const auto up = cache.transposed(cells->out(), set, kHalving);
  EXPECT_EQ(up->out(), set);
  EXPECT_EQ(cache.transposed(cells->out(), set, kHalving), up);
  EXPECT_NE(cache.transposed(dilating->out(), set, kHalving), up);
  EXPECT_EQ(cache.generative(set, kHalving), generated);
  EXPECT_EQ(cache.strided(set, kHalving, StridedOutputs::cell), cells);
  EXPECT_EQ(cache.built(), 5);
}

TEST(MapCache, LeavesLevelsWithOneSetSoThatTheirMapsAreShared) {
  Random random(1);
  const auto set = make_set(
      strew({.dimension = 3, .size = 300, .origin = {0, 0, 0}, .extent = {12, 12, 12}}, random), 3);
  const KernelWindow window = submanifold_window(3, {3, 3, 3}, {1, 1, 1});
  MapCache cache;
  for (int layer = 0; layer < 3; ++layer) {
    const auto down = cache.strided(set, kHalving, StridedOutputs::cell);
    cache.submanifold(down->out(), window);
  }
  EXPECT_EQ(cache.built(), 2);
}

TEST(MapCache, FindsTheStridedMapThatMadeASet) {
  const auto set = make_set({{0, 1, 2, 3}, {0, 1, 2, 4}}, 3);
  const KernelWindow pointwise{.size = {1, 1, 1}, .stride = {2, 2, 2}};
  const KernelWindow sideways{.size = {3, 1, 1}, .padding = {1, 0, 0}};
  MapCache cache;
  const auto down = cache.strided(set, kHalving, StridedOutputs::cell);
  const auto dilating = cache.strided(set, kHalving, StridedOutputs::dilating);
  const auto aside = cache.strided(set, sideways, StridedOutputs::dilating);
  // What leads to a set from coarser sites, or from others as fine, is no way back from it.
  const auto grown = cache.generative(down->out(), kHalving);
  cache.transposed(down->out(), set, pointwise);
  cache.transposed(aside->out(), set, sideways);
  EXPECT_EQ(cache.strided_to(down->out()), down);
  EXPECT_EQ(cache.strided_to(down->out(), kHalving), down);
  EXPECT_EQ(cache.strided_to(down->out(), kHalving, set), down);
  EXPECT_EQ(cache.strided_to(dilating->out(), kHalving, set), dilating);
  EXPECT_EQ(cache.strided_to(aside->out(), sideways), aside);
  EXPECT_EQ(cache.strided_to(down->out(), pointwise), nullptr);
  EXPECT_EQ(cache.strided_to(down->out(), kHalving, grown->out()), nullptr);
  EXPECT_EQ(cache.strided_to(grown->out()), nullptr);
  EXPECT_EQ(cache.strided_to(set), nullptr);
}

}   // namespace
}   // namespace pumice::test
