// Where results go: made as any tensor, by somebody's Results, or into memory that is given.
#include <pumice/core/results.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "support/message_of.hpp"

namespace pumice {
namespace {

class Remembers final : public Results {
 public:
  Tensor make(const Shape& shape, DType dtype, StreamView stream) override {
    made.emplace_back(shape, dtype, stream);
    return made.back();
  }
  std::vector<Tensor> made;
};

TEST(Results, WithoutAPlaceAResultIsATensorAsAnyOther) {
  const Tensor result = Place().make({2, 3}, DType::f16, {});
  EXPECT_EQ(result.shape(), Shape({2, 3}));
  EXPECT_EQ(result.dtype(), DType::f16);
  const Tensor zeros = Place().make_zeros({5}, DType::i32, {});
  for (const std::int32_t value : zeros.span<std::int32_t>())
    EXPECT_EQ(value, 0);
  EXPECT_EQ(Place().put(zeros).raw(), zeros.raw());
}

TEST(Results, AreAskedForJustWhatIsMade) {
  Remembers results;
  const Place place = results;
  const Tensor result = place.make({0, 3}, DType::f64, {});
  const Tensor zeros = place.make_zeros({4}, DType::u8, {});
  const Tensor copy = place.put(zeros);
  ASSERT_EQ(results.made.size(), 3u);
  EXPECT_EQ(results.made[0].shape(), Shape({0, 3}));
  EXPECT_EQ(results.made[0].dtype(), DType::f64);
  EXPECT_EQ(results.made[1].raw(), zeros.raw());
  EXPECT_EQ(results.made[2].raw(), copy.raw());
  EXPECT_EQ(copy.span<std::uint8_t>()[3], 0);
}

TEST(Results, GivenMemoryIsTheResultAndKeepsItsZeros) {
  Tensor whole = Tensor::full({8}, DType::f32, 7);
  const Tensor part = whole.part(2, {2, 2});
  EXPECT_EQ(Place(part).make({2, 2}, DType::f32, {}).raw(), part.raw());
  EXPECT_FALSE(Place(part).is_zeroed());
  Place::zeroed(part).make_zeros({2, 2}, DType::f32, {});   // trusted, and so not cleared again
  EXPECT_EQ(whole.span<float>()[2], 7);
  Place(part).make_zeros({2, 2}, DType::f32, {});
  EXPECT_EQ(whole.span<float>()[2], 0);
  EXPECT_EQ(whole.span<float>()[6], 7);
}

TEST(Results, MemoryThatDoesNotFitIsASentence) {
  const Place place = Tensor({2, 3}, DType::f32);
  EXPECT_EQ(
      test::message_of([&] {
        (void)place.make({3, 2}, DType::f32, {}, "places.weight");
      }),
      "places.weight is f32 [2, 3], but the result is f32 [3, 2]: give memory of that type and "
      "shape");
  EXPECT_EQ(
      test::message_of([&] {
        (void)place.make({2, 3}, DType::f64, {});
      }),
      "place is f32 [2, 3], but the result is f64 [2, 3]: give memory of that type and shape");
  EXPECT_EQ(test::message_of([&] {
              (void)place.make({2, 3}, DType::f32, {.device = {DeviceKind::cuda, 0}});
            }),
            "place is on cpu, but the result is on cuda:0: give memory there");
}

}   // namespace
}   // namespace pumice
