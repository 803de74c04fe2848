// Copies and fills, on the host and between it and devices.
#include <pumice/core/copy.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/stream.hpp>

#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

constexpr DType kAllTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,
                               DType::i64, DType::i32, DType::i16, DType::u8};

std::vector<float> counting(std::int64_t size) {
  std::vector<float> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), -3.0f);
  return values;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  const auto bytes = [](const Tensor& tensor) {
    return std::string_view(static_cast<const char*>(tensor.raw()), tensor.bytes());
  };
  return bytes(a) == bytes(b);
}

TEST(Copy, OnTheHostItIsDoneAtOnce) {
  const std::vector<float> values = counting(33);
  const Tensor from = Tensor::from<float>(values, Shape{3, 11});
  const Tensor copy = copy_to(StreamView{}, from);
  EXPECT_TRUE(same_bytes(copy, from));
  EXPECT_NE(copy.raw(), from.raw());
  EXPECT_TRUE(same_bytes(copy_to_host(from, StreamView{}), from));
}

TEST(Copy, BetweenUnlikeTensorsIsRefused) {
  Tensor to(Shape{2, 3}, DType::f32);
  const Tensor from(Shape{3, 2}, DType::f32);
  EXPECT_EQ(test::message_of([&] { copy_async(to.view(), from, {}); }),
            "copy of [3, 2] f32 to [2, 3] f32: shape and type are to be the same");
}

TEST(Copy, NeedsAStreamOfTheDevice) {
  Tensor to(Shape{1}, DType::f32);
  const ConstTensorView there(to.raw(), DType::f32, Shape{1}, StreamView{test::kGpu, nullptr});
  EXPECT_EQ(test::message_of([&] { copy_async(to.view(), there, {}); }),
            "copy from cuda:0 to cpu on a stream of cpu: the stream is to be of the CUDA device");
}

TEST(Fill, RoundsToEveryType) {
  for (const DType type : kAllTypes) {
    const Tensor filled = Tensor::full(Shape{33}, type, -0.0);
    EXPECT_EQ(filled.bytes(), 33 * size_of(type));
  }
  EXPECT_EQ(Tensor::full(Shape{3}, DType::i32, -7).span<std::int32_t>()[2], -7);
  EXPECT_EQ(Tensor::full(Shape{3}, DType::bf16, 1.0 / 3).span<BFloat16>()[1],
            to_bfloat16(1.0f / 3));
  EXPECT_TRUE(std::signbit(Tensor::full(Shape{1}, DType::f64, -0.0).span<double>()[0]));
}

TEST(DeviceMemory, IsNotForTheHostToRead) {
  const TensorView view(nullptr, DType::f32, Shape{4}, {test::kGpu, nullptr});
  EXPECT_EQ(test::message_of([&] { (void)view.span<float>(); }),
            "this tensor is on cuda:0: copy_to_host brings it to the host");
}

TEST(CopyGpu, ComesBackAsItWent) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  for (const std::int64_t rows : {0, 1, 31, 33, 65537}) {
    const std::vector<float> values = counting(rows * 3);
    const Tensor host = Tensor::from<float>(values, Shape{rows, 3});
    const Tensor there = copy_to(stream, host);
    EXPECT_EQ(there.device(), test::kGpu);
    EXPECT_EQ(there.stream(), stream.view());
    const Tensor twice = there.clone();
    EXPECT_TRUE(same_bytes(copy_to_host(twice, stream), host)) << rows;
  }
  EXPECT_FALSE(copy_to(stream, ConstTensorView{}).defined());
}

TEST(CopyGpu, BuffersComeBackAsVectors) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const std::vector<float> values = counting(1000);
  const Buffer<float> buffer(1000, stream);
  copy_async(const_cast<float*>(buffer.data()), test::kGpu, values.data(), Device{}, 4000, stream);
  EXPECT_EQ(copy_to_host(buffer, stream), values);
  EXPECT_THROW((void)buffer.span(), UserError);
}

TEST(CopyGpu, FillsAsTheHostDoes) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  for (const DType type : kAllTypes) {
    for (const double value : {0.0, 1.0, 100.0, 3.25}) {
      const Tensor here = Tensor::full(Shape{1025}, type, value);
      const Tensor there = Tensor::full(Shape{1025}, type, value, stream);
      EXPECT_TRUE(same_bytes(copy_to_host(there, stream), here)) << name_of(type) << ' ' << value;
    }
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor poisoned = copy_to_host(Tensor::full(Shape{5}, DType::f16, nan, stream), stream);
  EXPECT_TRUE(std::isnan(to_float(poisoned.span<Half>()[4])));
}

TEST(CopyGpu, ConversionsThatOnlyTheHostDoesAreRefused) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const Tensor there = Tensor::zeros(Shape{4}, DType::f32, stream);
  EXPECT_EQ(
      test::message_of([&] { (void)there.to(DType::f16); }),
      "a tensor on cuda:0 from f32 to f16: convert it on the host, before it is copied there");
  EXPECT_EQ(there.to(DType::f32).raw(), there.raw());
  EXPECT_EQ(test::message_of([&] { (void)copy_to(StreamView{}, there); }),
            "a tensor on cuda:0 comes to the host with copy_to_host, which waits for its stream");
}

TEST(CopyGpu, GoesFromOneDeviceToAnother) {
  PUMICE_NEEDS_GPUS(2);
  const Stream first(test::kGpu);
  const Stream second(Device{DeviceKind::cuda, 1});
  const std::vector<float> values = counting(65537);
  const Tensor host = Tensor::from<float>(values, Shape{65537});
  const Tensor there = copy_to(first, host);
  order_after(second, first);
  const Tensor beyond = copy_to(second, there);
  EXPECT_EQ(to_string(beyond.device()), "cuda:1");
  EXPECT_TRUE(same_bytes(copy_to_host(beyond, second), host));
}

}   // namespace
}   // namespace pumice
