// Relations whose rows repeat, as edges of one type between the same nodes do: what adds pair by
// pair takes them, what holds one product of a row and an offset refuses them.
#include <pumice/formats/relation.hpp>

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/random.hpp>
#include <pumice/formats/output_table.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/gather_gemm_scatter.hpp>
#include <pumice/kernels/tile_mma.hpp>
#include <pumice/kernels/weight_gradient.hpp>

#include "formats/cuda/device_formats.hpp"
#include "formats/synthetic_map.hpp"

namespace pumice::test {
namespace {

/// Edges drawn with repetition, in any order, grouped by type.
struct TypedEdges {
  std::int64_t types = 0;
  std::int64_t nodes = 0;
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> source{}, target{};

  RelationView view() const {
    return {.offsets = types,
            .in_rows = nodes,
            .out_rows = nodes,
            .offset_begin = begin,
            .in = source,
            .out = target,
            .unique_rows = false};
  }
};

TypedEdges typed_edges(std::int64_t types, std::int64_t nodes, std::int64_t edges_of_type,
                       std::uint64_t seed) {
  Random random(seed);
  TypedEdges edges{types, nodes};
  for (std::int64_t type = 0; type < types; ++type) {
    // Of the last type there is none; and few targets, so that most repeat.
    const std::int64_t count = type + 1 == types || nodes == 0 ? 0 : edges_of_type;
    for (std::int64_t i = 0; i < count; ++i) {
      edges.source.push_back(static_cast<std::int32_t>(random.integer(0, nodes - 1)));
      edges.target.push_back(static_cast<std::int32_t>(random.integer(0, (nodes - 1) / 3)));
    }
    edges.begin.push_back(static_cast<std::int64_t>(edges.source.size()));
  }
  return edges;
}

Tensor whole_numbers(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor(shape, DType::f32);
  for (float& value : tensor.span<float>())
    value = static_cast<float>(random.integer(-4, 4));
  return tensor;
}

struct Sizes {
  std::int64_t nodes, edges_of_type;
};
const Sizes kSizes[] = {{0, 0}, {1, 31}, {33, 500}, {700, 2000}, {65537, 70000}};

TEST(RepeatedRows, TilesHoldEveryPairOnceWithItsNumber) {
  for (const Sizes& size : kSizes) {
    SCOPED_TRACE(size.nodes);
    const TypedEdges edges = typed_edges(4, size.nodes, size.edges_of_type, 3);
    for (const bool is_transposed : {false, true}) {
      const RelationView relation = is_transposed ? transposed(edges.view()) : edges.view();
      const RelationTiles owner(relation, 64, EntryNumbers::kept);
      const RelationTilesView tiles = owner.view();
      EXPECT_FALSE(tiles.unique_rows);
      std::vector<bool> seen(edges.source.size());
      for (std::int64_t tile = 0; tile < tiles.tiles; ++tile) {
        for (std::int64_t type = 0; type < tiles.offsets; ++type) {
          const std::int64_t* const range = tiles.begin + tile * tiles.offsets + type;
          for (std::int64_t pair = range[0]; pair < range[1]; ++pair) {
            const auto number = static_cast<std::size_t>(tiles.entry[pair]);
            ASSERT_FALSE(seen[number]);
            seen[number] = true;
            ASSERT_EQ(tiles.in[pair], relation.in[number]);
            ASSERT_EQ(tile * 64 + tiles.local_out[pair], relation.out[number]);
            ASSERT_GE(tiles.entry[pair], relation.offset_begin[static_cast<std::size_t>(type)]);
            ASSERT_LT(tiles.entry[pair], relation.offset_begin[static_cast<std::size_t>(type) + 1]);
            // Rows ascend; of equal rows the order of the relation stays.
            if (pair == range[0]) continue;
            ASSERT_GE(tiles.local_out[pair], tiles.local_out[pair - 1]);
            if (tiles.local_out[pair] == tiles.local_out[pair - 1]) {
              ASSERT_GT(tiles.entry[pair], tiles.entry[pair - 1]);
            }
          }
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true),
                static_cast<std::ptrdiff_t>(edges.source.size()));
    }
  }
}

TEST(RepeatedRows, AreSlicedWhereTheyAscend) {
  TypedEdges edges{2, 100, {0, 300, 300}};
  for (std::int32_t i = 0; i < 300; ++i) {
    edges.source.push_back(i % 100);
    edges.target.push_back(i / 3 / 10);   // 30 pairs for each of ten rows
  }
  RelationView relation = edges.view();
  relation.sorted_by_out = true;
  const RelationTiles owner(relation, 4, EntryNumbers::kept);
  const RelationTilesView tiles = owner.view();
  EXPECT_EQ(tiles.begin[1], 120);   // more pairs than a tile has rows
  EXPECT_EQ(tiles.begin[2 * 25], 300);
  for (std::int64_t pair = 0; pair < 300; ++pair)
    ASSERT_EQ(tiles.entry[pair], pair);
}

TEST(RepeatedRows, EveryEdgeCountsInSumsAndGradientsOfWeights) {
  constexpr std::int64_t kIn = 5, kOut = 19;
  for (const Sizes& size : kSizes) {
    SCOPED_TRACE(size.nodes);
    const TypedEdges edges = typed_edges(4, size.nodes, size.edges_of_type, 5);
    const Tensor input = whole_numbers({size.nodes, kIn}, 1);
    const Tensor weight = whole_numbers({4, kIn, kOut}, 2);
    const Tensor grad = whole_numbers({size.nodes, kOut}, 4);
    // Whole numbers below 2^24: every order of sums gives the same.
    std::vector<double> sums(static_cast<std::size_t>(size.nodes * kOut));
    std::vector<double> gradients(4 * kIn * kOut);
    for (std::size_t type = 0; type < 4; ++type) {
      for (auto e = static_cast<std::size_t>(edges.begin[type]);
           e < static_cast<std::size_t>(edges.begin[type + 1]); ++e) {
        for (std::size_t i = 0; i < kIn; ++i) {
          const double x = input.data<float>()[static_cast<std::size_t>(edges.source[e]) * kIn + i];
          for (std::size_t o = 0; o < kOut; ++o) {
            const auto to = static_cast<std::size_t>(edges.target[e]) * kOut + o;
            sums[to] += x * weight.data<float>()[(type * kIn + i) * kOut + o];
            gradients[(type * kIn + i) * kOut + o] += x * grad.data<float>()[to];
          }
        }
      }
    }
    const RelationTiles tiles(edges.view(), 512);
    Tensor output({size.nodes, kOut}, DType::f32);
    gather_gemm_scatter({.input = input,
                         .weight = weight,
                         .groups = 1,
                         .tiles = tiles.view(),
                         .output = output.view()});
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_EQ(output.data<float>()[i], sums[i]) << i;
    const Tensor found = weight_gradient(input, grad, edges.view(), 1);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      ASSERT_EQ(found.data<float>()[i], gradients[i]) << i;
  }
}

template <class Call> std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no refusal";
}

TEST(RepeatedRows, AreRefusedByWhatHoldsOneProductOfARow) {
  const TypedEdges edges = typed_edges(3, 40, 100, 6);
  EXPECT_NE(refusal_of([&] { OutputTable(edges.view(), true, 1); }).find("RelationTiles"),
            std::string::npos);
  const Tensor input = whole_numbers({40, 8}, 1);
  const WeightPanels weight(whole_numbers({3, 8, 8}, 2), 1, false);
  const RelationTiles tiles(edges.view(), 64);
  Tensor output({40, 8}, DType::f32);
  EXPECT_NE(
      refusal_of([&] {
        tile_mma(
            {.input = input, .weight = &weight, .tiles = tiles.view(), .output = output.view()});
      }).find("gather_gemm_scatter"),
      std::string::npos);
  EXPECT_NE(
      refusal_of([&] { cuda::tiles_of(edges.view(), {}); }).find("rows of this relation repeat"),
      std::string::npos);
  EXPECT_NE(
      refusal_of([&] { cuda::pair_index_of(edges.view()); }).find("rows of this relation repeat"),
      std::string::npos);
}

TEST(Relation, OfAKernelMapIsItsViewInBothDirections) {
  const SyntheticMap made = synthetic_map(27, 300, 400, 0.3, false, 8);
  const KernelMapView map = made.view();
  const RelationView relation = relation_of(map);
  EXPECT_TRUE(relation.unique_rows);
  EXPECT_EQ(relation.formats, nullptr);
  EXPECT_EQ(relation.pairs(), map.pairs());
  const RelationView back = transposed(relation);
  const RelationView of_back = relation_of(transposed(map));
  EXPECT_EQ(back.in.data(), of_back.in.data());
  EXPECT_EQ(back.out_order.data(), of_back.out_order.data());
  EXPECT_EQ(back.sorted_by_out, of_back.sorted_by_out);
  EXPECT_EQ(back.in_rows, 400);
  EXPECT_EQ(back.is_transposed, of_back.is_transposed);
  EXPECT_EQ(transposed(back).in.data(), relation.in.data());
}

}   // namespace
}   // namespace pumice::test
