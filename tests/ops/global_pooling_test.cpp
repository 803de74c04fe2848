// Global pooling and broadcasting against float64 loops, with batch items that have no rows.
#include <pumice/ops/global_pooling.hpp>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

void check_pools(const CoordinateSet& set, DType type, std::int64_t channels) {
  const reference::Rows items = items_of(set);
  const std::int64_t batch = set.batch_size();
  const auto rows = static_cast<double>(std::max<std::int64_t>(1, set.size()));
  const Tensor x = chance_tensor({set.size(), channels}, type, 1);
  const Tensor g = chance_tensor({batch, channels}, type, 2);

  Matrix source;
  const Matrix maximum = reference::item_max(matrix_of(x), items, batch, source);
  const GlobalMaxPooled pooled = global_max_pool(x, set);
  expect_equal(pooled.output, maximum, "maximum");
  expect_equal(pooled.argmax, source, "argmax");
  expect_equal(global_max_pool_gradient(g, pooled.argmax, set),
               reference::max_pool_gradient(matrix_of(g), source, set.size()), "max gradient");

  // Sums are in double: only f64 sees their rounding.
  const double work = type == DType::f64 ? rows : 1;
  expect_near(global_sum_pool(x, set), reference::item_sum(matrix_of(x), items, batch, false), work,
              type == DType::f64 ? rows : 0, "sum");
  expect_near(global_average_pool(x, set), reference::item_sum(matrix_of(x), items, batch, true),
              work, type == DType::f64 ? 1 : 0x1p-20, "average");
  expect_equal(global_sum_pool_gradient(g, set), reference::spread(matrix_of(g), items, false),
               "sum gradient");
  expect_near(global_average_pool_gradient(g, set), reference::spread(matrix_of(g), items, true), 2,
              1 / rows, "average gradient");
}

void check_broadcasts(const CoordinateSet& set, DType type, std::int64_t channels) {
  const reference::Rows rows = items_of(set);
  const Tensor x = chance_tensor({set.size(), channels}, type, 3);
  const Tensor y = chance_tensor({set.batch_size(), channels}, type, 4);
  const Tensor g = chance_tensor({set.size(), channels}, type, 5);
  const Matrix spread = reference::spread(matrix_of(y), rows, false);
  const auto n = static_cast<double>(std::max<std::int64_t>(1, set.size()));
  const double work = type == DType::f64 ? n : 1;
  const auto sums = [&](const Matrix& m) {
    return reference::item_sum(m, rows, set.batch_size(), false);
  };

  expect_equal(broadcast(y, set), spread, "broadcast");
  expect_near(broadcast_add(x, y, set), reference::elementwise(matrix_of(x), spread, '+'), 1, 2,
              "add");
  expect_near(broadcast_multiply(x, y, set), reference::elementwise(matrix_of(x), spread, '*'), 1,
              1, "multiply");
  expect_equal(broadcast_concatenate(x, y, set), reference::beside(matrix_of(x), spread),
               "concatenate");

  const BroadcastGradients added = broadcast_add_gradient(g, set);
  expect_equal(added.features, matrix_of(g), "add gradient");
  expect_near(added.items, sums(matrix_of(g)), work, work, "add gradient of items");
  const BroadcastGradients multiplied = broadcast_multiply_gradient(x, y, g, set);
  expect_near(multiplied.features, reference::elementwise(matrix_of(g), spread, '*'), 1, 1,
              "multiply gradient");
  expect_near(multiplied.items, sums(reference::elementwise(matrix_of(g), matrix_of(x), '*')),
              2 * work, work, "multiply gradient of items");
  if (channels < 2) return;
  const BroadcastGradients joined = broadcast_concatenate_gradient(g, 1, set);
  expect_equal(joined.features, reference::columns(matrix_of(g), 0, 1), "concatenate gradient");
  expect_near(joined.items, sums(reference::columns(matrix_of(g), 1, channels)), work, work,
              "concatenate gradient of items");
}

TEST(GlobalPooling, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    for (const bool shuffled : {true, false}) {
      const CoordinateSetPtr set = chance_set(rows, 5, 3, shuffled);
      for (const DType type : kFloating) {
        SCOPED_TRACE(rows);
        for (const std::int64_t channels : {1, 5, 96}) {
          if (rows > 1000 && channels > 5) continue;
          check_pools(*set, type, channels);
          check_broadcasts(*set, type, channels);
        }
      }
    }
  }
}

TEST(GlobalPooling, items_without_rows_are_zero) {
  const CoordinateSetPtr set = chance_set(33, 6);
  const Tensor x = chance_tensor({33, 2}, DType::f32, 1, -9, -1);
  const GlobalMaxPooled pooled = global_max_pool(x, *set);
  EXPECT_EQ(pooled.output.data<float>()[2 * 2], 0);
  EXPECT_EQ(pooled.argmax.data<std::int32_t>()[2 * 2], -1);
  EXPECT_LT(pooled.output.data<float>()[0], 0);
  EXPECT_EQ(global_average_pool(x, *set).data<float>()[4 * 2], 0);
}

TEST(GlobalPooling, gradients_are_central_differences) {
  const CoordinateSetPtr set = chance_set(31, 7);
  const Tensor x = chance_tensor({31, 2}, DType::f64, 1);
  const Tensor y = chance_tensor({5, 2}, DType::f64, 2);
  const Tensor g = chance_tensor({5, 2}, DType::f64, 3);
  const Tensor h = chance_tensor({31, 2}, DType::f64, 4);
  const Tensor j = chance_tensor({31, 4}, DType::f64, 5);
  expect_gradient([&](const Tensor& t) { return global_max_pool(t, *set).output; }, x, g,
                  global_max_pool_gradient(g, global_max_pool(x, *set).argmax, *set), "max");
  expect_gradient([&](const Tensor& t) { return global_average_pool(t, *set); }, x, g,
                  global_average_pool_gradient(g, *set), "average");
  expect_gradient([&](const Tensor& t) { return global_sum_pool(t, *set); }, x, g,
                  global_sum_pool_gradient(g, *set), "sum");
  expect_gradient([&](const Tensor& t) { return broadcast(t, *set); }, y, h,
                  global_sum_pool(h, *set), "broadcast");
  const BroadcastGradients product = broadcast_multiply_gradient(x, y, h, *set);
  expect_gradient([&](const Tensor& t) { return broadcast_multiply(t, y, *set); }, x, h,
                  product.features, "multiply, features");
  expect_gradient([&](const Tensor& t) { return broadcast_multiply(x, t, *set); }, y, h,
                  product.items, "multiply, items");
  expect_gradient([&](const Tensor& t) { return broadcast_add(x, t, *set); }, y, h,
                  broadcast_add_gradient(h, *set).items, "add, items");
  expect_gradient([&](const Tensor& t) { return broadcast_concatenate(x, t, *set); }, y, j,
                  broadcast_concatenate_gradient(j, 2, *set).items, "concatenate, items");
}

TEST(GlobalPooling, threads_do_not_change_a_bit) {
  const CoordinateSetPtr set = chance_set(65537, 8);
  const Tensor x = chance_tensor({65537, 7}, DType::f32, 1);
  const Tensor y = chance_tensor({5, 7}, DType::f32, 2);
  expect_same_on_threads([&] {
    const GlobalMaxPooled pooled = global_max_pool(x, *set);
    return std::vector<Tensor>{pooled.output, pooled.argmax, global_average_pool(x, *set),
                               broadcast_add(x, y, *set),
                               broadcast_multiply_gradient(x, y, x, *set).items};
  });
}

TEST(GlobalPooling, wrong_shapes_are_sentences) {
  const CoordinateSetPtr set = chance_set(31, 9);
  const Tensor x = chance_tensor({31, 2}, DType::f32, 1);
  expect_sentence(
      [&] {
        global_sum_pool(Tensor({30, 2}, DType::f32), *set);
      },
      {"global_sum_pool", "[30, 2]", "31"});
  expect_sentence([&] { broadcast(x, *set); }, {"broadcast", "5", "batch size"});
  expect_sentence([&] { broadcast_add(x, Tensor({5, 3}, DType::f32), *set); }, {"items", "2"});
  expect_sentence([&] { broadcast_add(x, Tensor({5, 2}, DType::f16), *set); }, {"f16", "f32"});
  expect_sentence([&] { broadcast_concatenate_gradient(x, 3, *set); }, {"channels = 3", "2"});
}

}   // namespace
}   // namespace pumice::test
