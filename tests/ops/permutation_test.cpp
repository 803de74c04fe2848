// Copies with axes in another order, beside a walk over all combinations of indices.
#include <pumice/ops/permutation.hpp>

#include <array>
#include <numeric>

#include "ops/ops_support.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// Element by element, by its indices.
Tensor permuted(const Tensor& from, const AxisOrder& order) {
  const Shape& shape = from.shape();
  const int rank = shape.rank();
  Tensor to(shape, from.dtype());
  const std::size_t bytes = size_of(from.dtype());
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (std::int64_t i = 0; i < from.elements(); ++i) {
    std::int64_t rest = i;
    for (int axis = rank - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    std::int64_t at = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const int of = order[static_cast<std::size_t>(axis)];
      at = at * shape[of] + index[static_cast<std::size_t>(of)];
    }
    std::memcpy(static_cast<std::byte*>(to.raw()) + static_cast<std::size_t>(at) * bytes,
                static_cast<const std::byte*>(from.raw()) + static_cast<std::size_t>(i) * bytes,
                bytes);
  }
  return to;
}

TEST(Permute, moves_each_element_to_where_its_indices_say) {
  for (const Shape& shape : {Shape{5, 3, 3, 3, 33}, Shape{3, 3, 3, 31, 32}, Shape{7, 65}, Shape{4},
                             Shape{2, 1, 3, 2, 4, 5}, Shape{3, 0, 2}, Shape{}}) {
    AxisOrder order{};
    std::iota(order.begin(), order.begin() + shape.rank(), 0);
    do {
      for (const DType type : {DType::f32, DType::f16, DType::f64}) {
        const Tensor from = chance_tensor(shape, type, 1);
        Tensor to(Shape{shape.elements()}, type);
        permute(std::array{Permutation{from, order, to.view()}});
        EXPECT_TRUE(same_bits(to, permuted(from, order).reshaped({shape.elements()})))
            << to_string(shape);
      }
    } while (std::next_permutation(order.begin(), order.begin() + shape.rank()));
  }
}

TEST(Permute, goes_through_a_list_of_copies) {
  const Tensor one = chance_tensor({7, 5}, DType::f32, 1);
  const Tensor two = chance_tensor({65537, 2}, DType::f32, 2);
  Tensor first({5, 7}, DType::f32);
  Tensor second({2, 65537}, DType::f32);
  permute(
      std::array{Permutation{one, {1, 0}, first.view()}, Permutation{two, {1, 0}, second.view()}});
  EXPECT_TRUE(same_bits(first, permuted(one, {1, 0}).reshaped({5, 7})));
  EXPECT_TRUE(same_bits(second, permuted(two, {1, 0}).reshaped({2, 65537})));
  permute({});
}

TEST(Permute, wrong_arguments_are_named) {
  const Tensor from = chance_tensor({7, 5}, DType::f32, 1);
  Tensor to({5, 7}, DType::f32);
  Tensor narrow({5, 7}, DType::f16);
  Tensor small({5, 6}, DType::f32);
  const auto run = [&](const AxisOrder& order, Tensor& into) {
    permute(std::array{Permutation{from, order, into.view()}});
  };
  expect_sentence([&] { run({1, 1}, to); }, {"axis 1 is axis 1", "[7, 5]", "once"});
  expect_sentence([&] { run({0, 2}, to); }, {"axis 1 is axis 2"});
  expect_sentence([&] { run({-1, 0}, to); }, {"axis 0 is axis -1"});
  expect_sentence([&] { run({1, 0}, narrow); }, {"to holds f16", "f32"});
  expect_sentence([&] { run({1, 0}, small); }, {"[5, 6]", "[7, 5]"});
}

}   // namespace
}   // namespace pumice::test
