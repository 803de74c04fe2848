// Tensors: shapes are checked, copies share, clones do not, conversions round once.
#include <pumice/core/tensor.hpp>

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/tensor_request.hpp>

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
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor holds i32, read as f32"), std::string::npos);
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

/// Remembers which tensors it was asked for.
class AskedFor final : public Allocator {
 public:
  void* allocate(std::size_t bytes, StreamView stream) override {
    const TensorRequest* const request = tensor_request();
    requests.push_back(request == nullptr ? std::nullopt : std::optional(*request));
    if (refuses) throw std::bad_alloc();
    return cpu_allocator()->allocate(bytes, stream);
  }
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    cpu_allocator()->deallocate(data, bytes, stream);
  }
  std::vector<std::optional<TensorRequest>> requests;
  bool refuses = false;
};

TEST(Tensor, SaysToItsAllocatorWhatItIs) {
  const auto allocator = std::make_shared<AskedFor>();
  const Tensor tensor({3, 5}, DType::bf16, {}, allocator);
  const Buffer<float> buffer(7, {}, allocator);   // no tensor
  allocator->refuses = true;
  EXPECT_THROW(Tensor({4}, DType::i64, {}, allocator), std::bad_alloc);
  ASSERT_EQ(allocator->requests.size(), 3u);
  ASSERT_TRUE(allocator->requests[0]);
  EXPECT_EQ(allocator->requests[0]->shape, Shape({3, 5}));
  EXPECT_EQ(allocator->requests[0]->dtype, DType::bf16);
  EXPECT_FALSE(allocator->requests[1]);
  ASSERT_TRUE(allocator->requests[2]);
  EXPECT_EQ(allocator->requests[2]->shape, Shape({4}));
  EXPECT_EQ(tensor_request(), nullptr);
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
