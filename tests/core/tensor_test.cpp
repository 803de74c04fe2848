// Tensors: shapes are checked, copies share, clones do not, conversions round once.
#include <pumice/core/tensor.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pumice {
namespace {

TEST(Shape, CountsItsElementsAndRefusesOverflow) {
  EXPECT_EQ(Shape({27, 96, 96}).elements(), 27 * 96 * 96);
  EXPECT_EQ(Shape({0, 5}).elements(), 0);
  EXPECT_EQ(Shape().elements(), 0);
  EXPECT_EQ(to_string(Shape{3, 4}), "[3, 4]");
  EXPECT_THROW((void)Shape({std::int64_t{1} << 40, std::int64_t{1} << 40}).elements(), UserError);
  EXPECT_THROW(Shape({-1}), UserError);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor tensor = Tensor::full({2, 3}, DType::f32, 1.5);
  Tensor shared = tensor;
  Tensor cloned = tensor.clone();
  tensor.data<float>()[4] = 7;
  EXPECT_EQ(shared.data<float>()[4], 7);
  EXPECT_EQ(cloned.data<float>()[4], 1.5f);
}

TEST(Tensor, KnowsItsTypeAndSaysWhenItIsReadAsAnother) {
  const Tensor tensor = Tensor::zeros({4}, DType::i32);
  try {
    (void)tensor.data<float>();
    FAIL() << "an i32 tensor was read as f32";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "this tensor holds i32, and is read as f32; read it as i32, or convert it first "
                 "with Tensor::to");
  }
}

TEST(Tensor, ConvertsBetweenFloatingTypesAtAwkwardSizes) {
  for (const std::int64_t size : {0, 1, 31, 33, 65537}) {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i % 251) - 125;
    const Tensor tensor = Tensor::from<float>(values, Shape{size});
    for (const DType type : {DType::f16, DType::bf16, DType::f64}) {
      const Tensor back = tensor.to(type).to(DType::f32);   // integers below 256 are exact in all
      EXPECT_TRUE(std::equal(values.begin(), values.end(), back.span<float>().begin()));
    }
  }
}

TEST(Tensor, EmptyOnesAreOrdinary) {
  Tensor empty(Shape{0, 16}, DType::f16);
  EXPECT_TRUE(empty.defined());
  EXPECT_EQ(empty.rows(), 0);
  EXPECT_EQ(empty.view().row_elements(), 16);
  EXPECT_EQ(empty.clone().shape(), empty.shape());
  EXPECT_EQ(empty.reshaped({16, 0}).extent(0), 16);
  EXPECT_THROW((void)empty.reshaped({1}), UserError);
}

/// Counts what it gets back.
class Lender final : public Allocator {
 public:
  void* allocate(std::size_t, StreamView) override { return nullptr; }
  void deallocate(void* data, std::size_t bytes, StreamView) noexcept override {
    returned.emplace_back(data, bytes);
  }
  std::vector<std::pair<void*, std::size_t>> returned;
};

TEST(Tensor, TakesOverMemoryAndGivesItBackOnce) {
  const auto lender = std::make_shared<Lender>();
  std::array<float, 6> memory{1, 2, 3, 4, 5, 6};
  {
    Tensor tensor(memory.data(), {2, 3}, DType::f32, {}, lender);
    EXPECT_EQ(tensor.allocator(), lender.get());
    const Tensor last = tensor.part(3, {3});
    tensor = {};
    EXPECT_TRUE(lender->returned.empty());   // a part keeps it
    EXPECT_EQ(last.span<float>()[0], 4);
    EXPECT_EQ(last.allocator(), lender.get());
  }
  ASSERT_EQ(lender->returned.size(), 1u);
  EXPECT_EQ(lender->returned.front(), (std::pair<void*, std::size_t>(memory.data(), 24)));
}

TEST(Tensor, PartsShareAndStayInside) {
  const std::array<float, 6> values{0, 1, 2, 3, 4, 5};
  Tensor whole = Tensor::from<float>(values, {6});
  Tensor part = whole.part(2, {2, 2});
  Tensor inner = part.part(1, {3});
  inner.span<float>()[0] = 9;
  EXPECT_EQ(whole.span<float>()[3], 9);
  EXPECT_EQ(part.clone().span<float>()[1], 9);
  EXPECT_EQ(whole.part(6, {0, 4}).elements(), 0);
  EXPECT_THROW((void)whole.part(-1, {1}), UserError);
  EXPECT_THROW((void)whole.part(4, {3}), UserError);
  EXPECT_THROW((void)part.part(2, {3}), UserError);
}

TEST(DType, NamesGoBothWays) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                           DType::i16, DType::u8}) {
    EXPECT_EQ(parse_dtype(name_of(type)), type);
  }
  EXPECT_EQ(parse_dtype("fp16"), DType::f16);
  EXPECT_EQ(parse_dtype("float32"), DType::f32);
  EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
  try {
    (void)parse_dtype("fp8");
    FAIL() << "fp8 was taken";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "dtype = \"fp8\": use one of f64, f32, f16, bf16, i64, i32, i16, u8");
  }
}

}   // namespace
}   // namespace pumice
