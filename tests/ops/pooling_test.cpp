// Pooling against float64 loops, on maps with outputs that no input meets.
#include <pumice/ops/pooling.hpp>

#include <numeric>

#include <pumice/maps/build.hpp>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

/// Pairs (out + k) mod rows -> out, two in five of them there: no pair repeats, and every
/// thirteenth output has none.
struct ChanceMap {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> in, out, order;
  reference::Meetings meetings;
  KernelMapView view;

  ChanceMap(std::int64_t rows, std::uint64_t seed) {
    Random random(seed);
    const std::int64_t offsets = std::clamp<std::int64_t>(rows, 1, 5);
    for (std::int64_t k = 0; k < offsets; ++k) {
      for (std::int64_t row = 0; row < rows; ++row) {
        if (row % 13 == 5 || random.integer(0, 4) > 1) continue;
        in.push_back(static_cast<std::int32_t>((row + k) % rows));
        out.push_back(static_cast<std::int32_t>(row));
        meetings.push_back({k, in.back(), out.back()});
      }
      begin.push_back(static_cast<std::int64_t>(in.size()));
    }
    order.resize(static_cast<std::size_t>(rows));
    std::iota(order.rbegin(), order.rend(), 0);
    view = {.offsets = offsets,
            .in_rows = rows,
            .out_rows = rows,
            .offset_begin = begin,
            .in = in,
            .out = out,
            .out_order = order,
            .in_order = {}};
  }
};

reference::Meetings meetings_of(const KernelMapView& map) {
  reference::Meetings result;
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (auto i = map.offset_begin[static_cast<std::size_t>(k)];
         i < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++i) {
      const auto at = static_cast<std::size_t>(i);
      result.push_back({k, map.in[at], map.out[at]});
    }
  }
  return result;
}

void check_pooling(const KernelMapView& map, const reference::Meetings& meetings, DType type,
                   std::int64_t channels) {
  const Tensor x = chance_tensor({map.in_rows, channels}, type, 1);
  const Tensor g = chance_tensor({map.out_rows, channels}, type, 2);
  const auto most = static_cast<double>(std::max<std::int64_t>(1, map.offsets));

  Matrix source;
  const Matrix maximum = reference::max_pool(matrix_of(x), meetings, map.out_rows, source);
  const MaxPooled pooled = max_pool(x, map);
  expect_equal(pooled.output, maximum, "maximum");
  expect_equal(pooled.argmax, source, "argmax");
  expect_near(max_pool_gradient(g, pooled.argmax, map),
              reference::max_pool_gradient(matrix_of(g), source, map.in_rows), most, most,
              "gradient of the maximum");
  for (const bool average : {false, true}) {
    expect_near(average ? average_pool(x, map) : sum_pool(x, map),
                reference::sum_pool(matrix_of(x), meetings, map.out_rows, average), most + 1, most,
                "sum");
    expect_near(average ? average_pool_gradient(g, map) : sum_pool_gradient(g, map),
                reference::sum_pool_gradient(matrix_of(g), meetings, map.in_rows, average),
                2 * most, most, "gradient of the sum");
  }
}

TEST(Pooling, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    const ChanceMap map(rows, 7);
    for (const DType type : kFloating) {
      SCOPED_TRACE(rows);
      check_pooling(map.view, map.meetings, type, rows == 65537 ? 3 : 37);
    }
  }
}

TEST(Pooling, wide_rows_pass_in_pieces) {
  const ChanceMap map(33, 8);
  for (const DType type : kFloating)
    check_pooling(map.view, map.meetings, type, 2500);
}

TEST(Pooling, strided_maps_of_real_sets) {
  for (const bool dilating : {false, true}) {
    KernelWindow window;
    window.size = axes(3, dilating ? 3 : 2);
    window.stride = axes(3, 2);
    window.padding = axes(3, dilating ? 1 : 0);
    const KernelMapPtr map = strided_map(
        chance_set(5000, 3), window, dilating ? StridedOutputs::dilating : StridedOutputs::cell);
    check_pooling(map->view(), meetings_of(map->view()), DType::f32, 16);
  }
}

TEST(Pooling, the_maximum_of_negative_inputs_is_negative) {
  const ChanceMap map(31, 9);
  const Tensor x = chance_tensor({31, 8}, DType::f32, 3, -9, -1);
  const MaxPooled pooled = max_pool(x, map.view);
  for (std::int64_t i = 0; i < pooled.output.elements(); ++i) {
    if (pooled.argmax.data<std::int32_t>()[i] < 0) {
      EXPECT_EQ(pooled.output.data<float>()[i], 0);
    } else {
      EXPECT_LT(pooled.output.data<float>()[i], 0);
    }
  }
}

TEST(Pooling, ties_go_to_the_first_offset_and_nan_wins) {
  const std::int64_t begin[] = {0, 1, 2, 3};
  const std::int32_t in[] = {2, 0, 1};
  const std::int32_t out[] = {0, 0, 0};
  const KernelMapView map{.offsets = 3,
                          .in_rows = 3,
                          .out_rows = 1,
                          .offset_begin = begin,
                          .in = in,
                          .out = out,
                          .out_order = {},
                          .in_order = {}};
  const float inf = INFINITY;
  const float values[] = {5, NAN, -inf, 5, 1, -inf, 5, 2, -inf};
  const MaxPooled pooled = max_pool(Tensor::from(std::span<const float>(values), {3, 3}), map);
  EXPECT_EQ(pooled.argmax.data<std::int32_t>()[0], 2);
  EXPECT_TRUE(std::isnan(pooled.output.data<float>()[1]));
  EXPECT_EQ(pooled.argmax.data<std::int32_t>()[1], 0);
  EXPECT_EQ(pooled.output.data<float>()[2], -inf);
}

TEST(Pooling, gradients_are_central_differences) {
  const ChanceMap map(31, 10);
  const Tensor x = chance_tensor({31, 3}, DType::f64, 4);
  const Tensor g = chance_tensor({31, 3}, DType::f64, 5);
  expect_gradient([&](const Tensor& t) { return max_pool(t, map.view).output; }, x, g,
                  max_pool_gradient(g, max_pool(x, map.view).argmax, map.view), "max");
  expect_gradient([&](const Tensor& t) { return average_pool(t, map.view); }, x, g,
                  average_pool_gradient(g, map.view), "average");
  expect_gradient([&](const Tensor& t) { return sum_pool(t, map.view); }, x, g,
                  sum_pool_gradient(g, map.view), "sum");
}

TEST(Pooling, threads_do_not_change_a_bit) {
  const ChanceMap map(65537, 11);
  const Tensor x = chance_tensor({65537, 8}, DType::f32, 6);
  expect_same_on_threads([&] {
    MaxPooled pooled = max_pool(x, map.view);
    Tensor gradient = max_pool_gradient(x, pooled.argmax, map.view);
    return std::vector<Tensor>{pooled.output,
                               pooled.argmax,
                               gradient,
                               average_pool(x, map.view),
                               sum_pool(x, map.view),
                               average_pool_gradient(x, map.view),
                               sum_pool_gradient(x, map.view)};
  });
}

TEST(Pooling, wrong_shapes_are_sentences) {
  const ChanceMap map(31, 12);
  const Tensor x = chance_tensor({30, 4}, DType::f32, 1);
  expect_sentence([&] { max_pool(x, map.view); }, {"max_pool", "features", "[30, 4]", "31"});
  expect_sentence([&] { average_pool_gradient(x, map.view); }, {"grad_output", "31"});
  expect_sentence([&] { sum_pool(Tensor({31}, DType::f32), map.view); }, {"matrix"});
  expect_sentence([&] { sum_pool(Tensor({31, 1}, DType::i32), map.view); }, {"i32", "f32"});
  expect_sentence(
      [&] {
        max_pool_gradient(chance_tensor({31, 4}, DType::f32, 1), Tensor({31, 3}, DType::i32),
                          map.view);
      },
      {"argmax", "[31, 3]", "[31, 4]"});
}

}   // namespace
}   // namespace pumice::test
