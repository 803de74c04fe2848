// Sums, products and concatenations against float64 loops, on equal and on different sets.
#include <pumice/ops/elementwise.hpp>

#include <array>
#include <map>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

TEST(Elementwise, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    for (const DType type : kFloating) {
      const Tensor a = chance_tensor({rows, 5}, type, 1);
      const Tensor b = chance_tensor({rows, 5}, type, 2);
      const Tensor c = chance_tensor({rows, 2}, type, 3);
      const auto loop = [&](char op) {
        return reference::elementwise(matrix_of(a), matrix_of(b), op);
      };
      expect_near(add(a, b), loop('+'), 1, 2, "add");
      expect_near(subtract(a, b), loop('-'), 1, 2, "subtract");
      expect_near(multiply(a, b), loop('*'), 1, 1, "multiply");
      expect_near(scale(a, 0.3), reference::elementwise(matrix_of(a), Matrix(rows, 5, 0.3), '*'), 2,
                  0.3, "scale");
      Tensor total = a.clone();
      add_in_place(total.view(), b);
      expect_equal(total, matrix_of(add(a, b)), "add in place");

      const Matrix joined =
          reference::beside(reference::beside(matrix_of(a), matrix_of(c)), matrix_of(b));
      const std::array<ConstTensorView, 3> parts{a.view(), c.view(), b.view()};
      const Tensor wide = concatenate(parts);
      expect_equal(wide, joined, "concatenate");
      const std::array<std::int64_t, 4> widths{5, 2, 0, 5};
      const std::vector<Tensor> back = split(wide, widths);
      expect_equal(back[0], matrix_of(a), "split 0");
      expect_equal(back[1], matrix_of(c), "split 1");
      EXPECT_EQ(back[2].shape(), (Shape{rows, 0}));
      expect_equal(back[3], matrix_of(b), "split 3");
    }
  }
}

/// Rows of `side` in the order of `whole`; -1 where it has no such site.
reference::Rows rows_in(const CoordinateSet& whole, const CoordinateSet& side) {
  std::map<reference::Site, std::int64_t> known;
  std::int64_t row = 0;
  for (const reference::Site& site : sites_of(side))
    known[site] = row++;
  reference::Rows rows;
  for (const reference::Site& site : sites_of(whole)) {
    const auto found = known.find(site);
    rows.push_back(found == known.end() ? -1 : found->second);
  }
  return rows;
}

TEST(Elementwise, different_sets_meet_on_their_union) {
  for (const std::int64_t rows : kSizes) {
    const CoordinateSetPtr left = chance_set(rows, 1);
    const CoordinateSetPtr right = chance_set(rows == 0 ? 33 : rows, 2);
    const UnionSet sites = unite(*left, *right);
    const reference::Rows left_of = rows_in(*sites.set, *left);
    const reference::Rows right_of = rows_in(*sites.set, *right);
    for (const DType type : kFloating) {
      const Tensor a = chance_tensor({left->size(), 3}, type, 3);
      const Tensor b = chance_tensor({right->size(), 3}, type, 4);
      const Matrix x = reference::take(matrix_of(a), left_of);
      const Matrix y = reference::take(matrix_of(b), right_of);
      expect_near(add(a, b, sites), reference::elementwise(x, y, '+'), 1, 2, "add");
      expect_equal(concatenate(a, b, sites), reference::beside(x, y), "concatenate");
      const Tensor g = chance_tensor({sites.set->size(), 3}, type, 5);
      const UnionGradients sum = union_add_gradient(g, sites);
      expect_equal(sum.left, reference::scatter(matrix_of(g), left_of, left->size()), "left");
      expect_equal(sum.right, reference::scatter(matrix_of(g), right_of, right->size()), "right");
      const UnionGradients joined = union_concatenate_gradient(g, 1, sites);
      expect_equal(
          joined.left,
          reference::scatter(reference::columns(matrix_of(g), 0, 1), left_of, left->size()),
          "left columns");
      expect_equal(
          joined.right,
          reference::scatter(reference::columns(matrix_of(g), 1, 3), right_of, right->size()),
          "right columns");
    }
  }
}

TEST(Elementwise, gradients_are_central_differences) {
  const CoordinateSetPtr left = chance_set(31, 1);
  const CoordinateSetPtr right = chance_set(33, 2);
  const UnionSet sites = unite(*left, *right);
  const Tensor a = chance_tensor({31, 2}, DType::f64, 1);
  const Tensor b = chance_tensor({33, 2}, DType::f64, 2);
  const Tensor g = chance_tensor({sites.set->size(), 2}, DType::f64, 3);
  const Tensor h = chance_tensor({sites.set->size(), 4}, DType::f64, 4);
  const UnionGradients sum = union_add_gradient(g, sites);
  const UnionGradients joined = union_concatenate_gradient(h, 2, sites);
  expect_gradient([&](const Tensor& t) { return add(t, b, sites); }, a, g, sum.left, "left");
  expect_gradient([&](const Tensor& t) { return add(a, t, sites); }, b, g, sum.right, "right");
  expect_gradient([&](const Tensor& t) { return concatenate(t, b, sites); }, a, h, joined.left,
                  "left");
  expect_gradient([&](const Tensor& t) { return concatenate(a, t, sites); }, b, h, joined.right,
                  "right");
}

TEST(Elementwise, threads_do_not_change_a_bit) {
  const CoordinateSetPtr left = chance_set(65537, 1);
  const CoordinateSetPtr right = chance_set(65537, 2);
  const UnionSet sites = unite(*left, *right);
  const Tensor a = chance_tensor({65537, 3}, DType::f16, 1);
  const Tensor b = chance_tensor({65537, 3}, DType::f16, 2);
  expect_same_on_threads([&] {
    return std::vector<Tensor>{add(a, b), add(a, b, sites), concatenate(a, b, sites)};
  });
}

TEST(Elementwise, wrong_shapes_are_sentences) {
  const Tensor a = chance_tensor({9, 4}, DType::f32, 1);
  const Tensor b = chance_tensor({9, 3}, DType::f32, 2);
  expect_sentence([&] { add(a, b); }, {"add", "[9, 3]", "[9, 4]"});
  expect_sentence([&] { multiply(a, a.to(DType::f16)); }, {"f16", "f32"});
  expect_sentence([&] { concatenate(a, chance_tensor({8, 4}, DType::f32, 1)); }, {"[8, 4]", "9"});
  expect_sentence([&] { concatenate(std::span<const ConstTensorView>{}); }, {"at least one"});
  const std::array<std::int64_t, 2> widths{2, 3};
  expect_sentence([&] { split(a, widths); }, {"5 channels", "[9, 4]"});
  const CoordinateSetPtr left = chance_set(9, 1);
  const CoordinateSetPtr right = chance_set(8, 2);
  const UnionSet sites = unite(*left, *right);
  expect_sentence([&] { add(a, a, sites); }, {"right", "[9, 4]", "8"});
}

}   // namespace
}   // namespace pumice::test
