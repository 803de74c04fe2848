// Row moves and reductions against float64 loops, with repeated and absent rows.
#include <pumice/ops/rows.hpp>

#include <limits>
#include <map>
#include <numeric>

#include <pumice/formats/output_table.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/interpolation.hpp>
#include <pumice/ops/pooling.hpp>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

/// `count` rows below `limit`, or -1 for one in nine; distinct ones if `distinct` (count <= limit).
reference::Rows chance_rows(std::int64_t count, std::int64_t limit, bool distinct,
                            std::uint64_t seed) {
  Random random(seed);
  reference::Rows rows(static_cast<std::size_t>(count));
  if (distinct) {
    reference::Rows all(static_cast<std::size_t>(limit));
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t i = 1; i < all.size(); ++i) {
      std::swap(all[i],
                all[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i)))]);
    }
    std::copy_n(all.begin(), count, rows.begin());
  } else {
    for (auto& row : rows)
      row = limit == 0 ? -1 : random.integer(0, limit - 1);
  }
  for (auto& row : rows) {
    if (random.integer(0, 8) == 0) row = -1;
  }
  return rows;
}

Tensor tensor_of_rows(const reference::Rows& rows, DType type) {
  Tensor result({static_cast<std::int64_t>(rows.size())}, type);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (type == DType::i32)
      result.data<std::int32_t>()[i] = static_cast<std::int32_t>(rows[i]);
    else
      result.data<std::int64_t>()[i] = rows[i];
  }
  return result;
}

TEST(Rows, take_and_scatter_agree_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t size : kSizes) {
    for (const bool distinct : {true, false}) {
      const reference::Rows rows = chance_rows(size, size, distinct, 1);
      std::map<std::int64_t, int> repeats;
      int most = 1;
      for (const auto row : rows)
        most = std::max(most, row < 0 ? 0 : ++repeats[row]);
      for (const DType type : kFloating) {
        const Tensor list = tensor_of_rows(rows, type == DType::f16 ? DType::i64 : DType::i32);
        const Tensor x = chance_tensor({size, 7}, type, 2);
        const Tensor g = chance_tensor({size, 7}, type, 3);
        expect_equal(take_rows(x, list), reference::take(matrix_of(x), rows), "take");
        const Matrix expected = reference::scatter(matrix_of(g), rows, size);
        if (distinct)
          expect_equal(scatter_rows(g, list, size), expected, "scatter");
        else
          expect_near(scatter_rows(g, list, size), expected, most, most, "scatter");
      }
    }
  }
}

TEST(Rows, take_carries_any_type_and_shape) {
  const std::int32_t values[] = {1, 2, 3, 4, 5, 6};
  const Tensor x = Tensor::from(std::span<const std::int32_t>(values), {3, 1, 2});
  const Tensor y = take_rows(x, tensor_of_rows({2, -1, 2}, DType::i64));
  EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
  const std::int32_t expected[] = {5, 6, 0, 0, 5, 6};
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), y.data<std::int32_t>()));
}

TEST(Rows, reductions_agree_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t size : kSizes) {
    const std::int64_t out_rows = size / 3 + 1;
    const reference::Rows rows = chance_rows(size, out_rows, false, 4);
    reference::Meetings pairs;
    reference::Rows firsts(static_cast<std::size_t>(out_rows), -1);
    for (std::int64_t p = 0; p < size; ++p) {
      const std::int64_t row = rows[static_cast<std::size_t>(p)];
      if (row < 0) continue;
      pairs.push_back({0, p, row});
      std::int64_t& first = firsts[static_cast<std::size_t>(row)];
      if (first < 0) first = p;
    }
    for (const DType type : kFloating) {
      const Tensor list = tensor_of_rows(rows, type == DType::bf16 ? DType::i64 : DType::i32);
      const Tensor x = chance_tensor({size, 5}, type, 5, -2, -1);
      const Tensor g = chance_tensor({out_rows, 5}, type, 6);
      for (const bool mean : {false, true}) {
        const Reduction reduction = mean ? Reduction::mean : Reduction::sum;
        const ReducedRows got = reduce_rows(x, list, out_rows, reduction);
        expect_near(got.output, reference::sum_pool(matrix_of(x), pairs, out_rows, mean), 32,
                    type == DType::f64 ? 32 : 0, "sum");
        expect_near(reduce_rows_gradient(g, list, got.source, reduction),
                    reference::sum_pool_gradient(matrix_of(g), pairs, size, mean), 1, 1,
                    "sum gradient");
      }
      Matrix source;
      const Matrix maximum = reference::max_pool(matrix_of(x), pairs, out_rows, source);
      const ReducedRows max = reduce_rows(x, list, out_rows, Reduction::max);
      expect_equal(max.output, maximum, "max");
      expect_equal(max.source, source, "source of max");
      expect_equal(reduce_rows_gradient(g, list, max.source, Reduction::max),
                   reference::max_pool_gradient(matrix_of(g), source, size), "max gradient");
      const ReducedRows first = reduce_rows(x, list, out_rows, Reduction::first);
      expect_equal(first.output, reference::take(matrix_of(x), firsts), "first");
      expect_equal(reduce_rows_gradient(g, list, first.source, Reduction::first),
                   reference::scatter(matrix_of(g), firsts, size), "first gradient");
    }
  }
}

TEST(Rows, gradients_are_central_differences) {
  const Tensor x = chance_tensor({33, 2}, DType::f64, 1);
  const Tensor g = chance_tensor({12, 2}, DType::f64, 2);
  const Tensor row_of = tensor_of_rows(chance_rows(33, 12, false, 3), DType::i32);
  for (const Reduction reduction :
       {Reduction::sum, Reduction::mean, Reduction::max, Reduction::first}) {
    const ReducedRows reduced = reduce_rows(x, row_of, 12, reduction);
    expect_gradient([&](const Tensor& t) { return reduce_rows(t, row_of, 12, reduction).output; },
                    x, g, reduce_rows_gradient(g, row_of, reduced.source, reduction), "reduction");
  }
  const Tensor rows = tensor_of_rows(chance_rows(12, 33, false, 4), DType::i32);
  expect_gradient([&](const Tensor& t) { return take_rows(t, rows); }, x, g,
                  scatter_rows(g, rows, 33), "take");
}

TEST(Rows, threads_do_not_change_a_bit) {
  const Tensor rows = tensor_of_rows(chance_rows(65537, 9000, false, 5), DType::i32);
  const Tensor x = chance_tensor({65537, 5}, DType::f32, 1);
  expect_same_on_threads([&] {
    return std::vector<Tensor>{scatter_rows(x, rows, 9000),
                               reduce_rows(x, rows, 9000, Reduction::mean).output,
                               reduce_rows(x, rows, 9000, Reduction::max).source};
  });
}

/// Every operator that is given numbers of rows, with one that is none: nothing is read or written
/// there, and the sentence names list, element and number.
TEST(Rows, that_there_are_not_are_refused_by_every_operator) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Tensor three = chance_tensor({3, 2}, DType::f32, 1);
  const Tensor two = chance_tensor({2, 2}, DType::f32, 2);
  const CoordinateSetPtr set = chance_set(3, 1);
  const Tensor features = chance_tensor({3, 2}, DType::f32, 3);
  for (const std::int64_t hostile : {kMost, std::int64_t{-2}, std::int64_t{3}}) {
    const std::string number = "= " + std::to_string(hostile) + " is not a row";
    for (const DType type : {DType::i32, DType::i64}) {
      const Tensor list = tensor_of_rows({0, hostile}, type);
      expect_sentence([&] { take_rows(three, list); }, {"rows[1]", number});
      expect_sentence([&] { scatter_rows(two, list, 3); }, {"rows[1]", number});
      for (const Reduction reduction :
           {Reduction::sum, Reduction::mean, Reduction::max, Reduction::first}) {
        expect_sentence([&] { reduce_rows(two, list, 3, reduction); }, {"row_of[1]", number});
        const Tensor source =
            Tensor::zeros(reduction == Reduction::max ? Shape{3, 2} : Shape{3}, DType::i32);
        expect_sentence([&] { reduce_rows_gradient(three, list, source, reduction); },
                        {"[1]", number});
      }
    }
    const Tensor table = Tensor::from<std::int32_t>(
        std::vector<std::int32_t>{0, -1, 2, static_cast<std::int32_t>(hostile)}, {2, 2});
    const InterpolationMap map{table.clone(), Tensor::full({2, 2}, DType::f32, 0.5), 3};
    expect_sentence([&] { interpolate(three, map); }, {"interpolate: rows[1, 1]", number});
    expect_sentence([&] { interpolate_gradient(two, map); },
                    {"interpolate_gradient: rows[1, 1]", number});
    const std::int64_t items = set->batch_size();
    Tensor argmax = Tensor::zeros({items, 2}, DType::i32);
    argmax.data<std::int32_t>()[1] = static_cast<std::int32_t>(hostile);
    expect_sentence(
        [&] {
          global_max_pool_gradient(chance_tensor({items, 2}, DType::f32, 4), argmax, *set);
        },
        {"argmax[0, 1]", number});
    UnionSet both = unite(*set, *set);
    both.left_row.data<std::int32_t>()[1] = static_cast<std::int32_t>(hostile);
    expect_sentence([&] { add(features, features, both); }, {"left[1]", number});
    expect_sentence([&] { concatenate(features, features, both); }, {"left[1]", number});
    expect_sentence([&] { union_add_gradient(features, both); }, {"left[1]", number});
    expect_sentence([&] { union_concatenate_gradient(features, 1, both); }, {"left[1]", number});
  }
  // What is compared with rows and never followed: no gradient goes where nobody was chosen.
  const KernelMapPtr map = submanifold_map(set, submanifold_window(3, axes(3, 1), axes(3, 1)));
  const Tensor grad = max_pool_gradient(
      three, Tensor::full({3, 2}, DType::i32, static_cast<double>(kMost)), map->view());
  for (const float value : grad.span<float>())
    EXPECT_EQ(value, 0);
  const InterpolationMap halves{Tensor::zeros({2, 2}, DType::i32),
                                Tensor::zeros({2, 2}, DType::f16), 3};
  expect_sentence([&] { interpolate(three, halves); }, {"weights", "f16"});
}

/// Lists of pairs that are a caller's own, in every operator over a kernel map.
TEST(Rows, of_pairs_that_there_are_not_are_refused_by_every_operator) {
  const Tensor x = chance_tensor({3, 2}, DType::f32, 1);
  const Tensor dy = chance_tensor({2, 4}, DType::f32, 2);
  const Tensor like_x = chance_tensor({2, 2}, DType::f32, 2);
  const Tensor weight = chance_tensor({2, 2, 4}, DType::f32, 3);
  const Tensor argmax = Tensor::zeros({2, 2}, DType::i32);
  const std::int64_t begin[] = {0, 1, 2};
  for (const std::int32_t hostile : {std::numeric_limits<std::int32_t>::max(), -2, 3}) {
    for (const bool in_input : {true, false}) {
      const std::int32_t in[] = {0, in_input ? hostile : 1};
      const std::int32_t out[] = {0, in_input ? 1 : hostile};
      const KernelMapView map{.offsets = 2,
                              .in_rows = 3,
                              .out_rows = 2,
                              .offset_begin = begin,
                              .in = in,
                              .out = out,
                              .out_order = {},
                              .in_order = {}};
      const std::string list = std::string(in_input ? "in" : "out") +
                               "[1] = " + std::to_string(hostile) + " is not a row";
      for (const Dataflow dataflow :
           {Dataflow::fetch_on_demand, Dataflow::gather_gemm_scatter, Dataflow::implicit_gemm})
        expect_sentence([&] { convolution(x, weight, map, {.dataflow = dataflow}); },
                        {"convolution", list});
      expect_sentence([&] { convolution_input_gradient(dy, weight, map); }, {list});
      expect_sentence([&] { convolution_weight_gradient(x, dy, map); }, {list});
      expect_sentence([&] { max_pool(x, map); }, {list});
      expect_sentence([&] { average_pool(x, map); }, {list});
      expect_sentence([&] { sum_pool(x, map); }, {list});
      expect_sentence([&] { max_pool_gradient(like_x, argmax, map); }, {list});
      expect_sentence([&] { average_pool_gradient(like_x, map); }, {list});
      expect_sentence([&] { sum_pool_gradient(like_x, map); }, {list});
      expect_sentence([&] { RelationTiles(map, 16); }, {list});
      expect_sentence([&] { OutputTable(map, true, 1); }, {list});
      expect_sentence([&] { weight_gradient(x, dy, map, 1); }, {list});
    }
  }
}

TEST(Rows, wrong_rows_are_sentences) {
  const Tensor x = chance_tensor({3, 2}, DType::f32, 1);
  expect_sentence(
      [&] {
        take_rows(x, tensor_of_rows({0, 3}, DType::i32));
      },
      {"take_rows", "rows[1] = 3", "0 to 2"});
  expect_sentence([&] { take_rows(x, tensor_of_rows({-2}, DType::i64)); }, {"rows[0] = -2"});
  expect_sentence([&] { take_rows(x, x); }, {"vector"});
  expect_sentence(
      [&] {
        scatter_rows(x, tensor_of_rows({0, 1}, DType::i32), 2);
      },
      {"grad_output", "[3, 2]", "2"});
  expect_sentence(
      [&] {
        reduce_rows(x, tensor_of_rows({0, 1, 2}, DType::i32), 2, Reduction::sum);
      },
      {"row_of[2] = 2", "0 to 1"});
  expect_sentence(
      [&] { reduce_rows_gradient(x, tensor_of_rows({0}, DType::i32), {}, Reduction::max); },
      {"source", "reduce_rows returned"});
}

}   // namespace
}   // namespace pumice::test
