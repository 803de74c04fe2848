// Packed weights: every weight where the kernels look for it, zeros elsewhere.
// Covers pack_weight of device/pumice/skeleton.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <gtest/gtest.h>

#include "kernels/emulated_tile.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

/// The weight at (group, offset, channel, column) of a packed image, by the layout's description.
float packed_at(const std::vector<std::byte>& image, const WeightLayout& layout, int group,
                int offset, int channel, int column) {
  const int tiles = divide_up(layout.out_channels, layout.columns);
  const int chunks = divide_up(layout.in_channels, layout.depth);
  const int bytes = element_bytes(layout.operand);
  const std::int64_t block =
      ((std::int64_t{group} * tiles + column / layout.columns) * layout.offsets + offset) * chunks +
      channel / layout.depth;
  const int c = channel % layout.depth, n = column % layout.columns;
  std::int64_t at = block * block_bytes(layout);
  if (layout.swizzle == 0) {
    at += (std::int64_t{c} * layout.columns + n) * bytes;
  } else {
    const int in_row = c * bytes % layout.swizzle;
    at += std::int64_t{c * bytes / layout.swizzle} * layout.columns * layout.swizzle +
          swizzled_offset(layout.swizzle, n, in_row / 16) + in_row % 16;
  }
  const std::byte* from = image.data() + at;
  if (bytes == 4) {
    float value;
    std::memcpy(&value, from, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, 2);
  return emulator::widen_half(layout.operand, bits);
}

/// Compares a whole image, padding included. `get(group, offset, channel, column)` is the truth.
template <class Get>
void expect_image(const std::vector<std::byte>& image, const WeightLayout& layout, const Get& get) {
  const int channels = divide_up(layout.in_channels, layout.depth) * layout.depth;
  const int columns = divide_up(layout.out_channels, layout.columns) * layout.columns;
  for (int group = 0; group < layout.groups; ++group) {
    for (int offset = 0; offset < layout.offsets; ++offset) {
      for (int channel = 0; channel < channels; ++channel) {
        for (int column = 0; column < columns; ++column) {
          const bool there = channel < layout.in_channels && column < layout.out_channels;
          ASSERT_EQ(packed_at(image, layout, group, offset, channel, column),
                    there ? get(group, offset, channel, column) : 0.0f)
              << group << ' ' << offset << ' ' << channel << ' ' << column;
        }
      }
    }
  }
}

constexpr WeightLayout kHalf{.operand = ElementType::f16,
                             .offsets = 3,
                             .groups = 2,
                             .in_channels = 37,
                             .out_channels = 21,
                             .columns = 16,
                             .depth = 32,
                             .swizzle = 64};

TEST(PackWeight, keeps_every_weight_and_pads_with_zeros) {
  const Tensor weight = random_tensor(Shape{3, 37, 42}, DType::f16, 1);
  const Tensor wide = weight.to(DType::f32);
  expect_image(pack_emulated(kHalf, weight), kHalf, [&](int g, int k, int c, int n) {
    return wide.data<float>()[(k * 37 + c) * 42 + g * 21 + n];
  });
}

TEST(PackWeight, every_swizzle_and_plain_rows) {
  for (const int swizzle : {0, 32, 64, 128}) {
    WeightLayout layout{.operand = swizzle == 0 ? ElementType::f32 : ElementType::bf16,
                        .offsets = 2,
                        .in_channels = 70,
                        .out_channels = 30,
                        .columns = 16,
                        .depth = 64,
                        .swizzle = swizzle};
    const Tensor weight = random_tensor(Shape{2, 70, 30}, storage_type(layout.operand), 1);
    const Tensor wide = weight.to(DType::f32);
    expect_image(pack_emulated(layout, weight), layout, [&](int, int k, int c, int n) {
      return wide.data<float>()[(k * 70 + c) * 30 + n];
    });
  }
}

TEST(PackWeight, rounds_to_tf32) {
  constexpr WeightLayout kLayout{.operand = ElementType::tf32,
                                 .in_channels = 8,
                                 .out_channels = 8,
                                 .columns = 8,
                                 .depth = 8,
                                 .swizzle = 32};
  const Tensor weight = random_tensor(Shape{1, 8, 8}, DType::f32, 1);
  expect_image(pack_emulated(kLayout, weight), kLayout, [&](int, int, int c, int n) {
    return bits_to_float(round_to_tf32(float_to_bits(weight.data<float>()[c * 8 + n])));
  });
}

/// A product of two numbers of f16 is exact in fp32, so that it is rounded once.
TEST(PackWeight, takes_scales_of_output_channels_along) {
  const Tensor weight = random_tensor(Shape{3, 37, 42}, DType::f16, 1);
  const Tensor scale = random_tensor(Shape{42}, DType::f16, 2).to(DType::f32);
  std::vector<std::byte> image(static_cast<std::size_t>(packed_bytes(kHalf)), std::byte{0xff});
  emulate({.blocks = 2, .threads = 64}, pack_weight,
          PackWeightArguments{.layout = kHalf,
                              .weight = weight.raw(),
                              .packed = image.data(),
                              .scale = scale.data<float>(),
                              .source = ElementType::f16});
  Tensor scaled = weight.to(DType::f32);
  for (std::int64_t i = 0; i < scaled.elements(); ++i)
    scaled.data<float>()[i] *= scale.data<float>()[i % 42];
  const Tensor rounded = scaled.to(DType::f16).to(DType::f32);
  expect_image(image, kHalf, [&](int g, int k, int c, int n) {
    return rounded.data<float>()[(k * 37 + c) * 42 + g * 21 + n];
  });
}

/// The input gradient's product has the channels exchanged: its layout is made for Wᵀ.
TEST(PackWeight, transposes_and_mirrors_for_the_input_gradient) {
  const Tensor weight = random_tensor(Shape{3, 21, 74}, DType::f16, 1);   // 21 → 37, two groups
  const Tensor wide = weight.to(DType::f32);
  expect_image(pack_emulated(kHalf, weight, true, true), kHalf, [&](int g, int k, int c, int n) {
    return wide.data<float>()[((2 - k) * 21 + n) * 74 + g * 37 + c];
  });
}

/// More weights than one launch takes, of several layouts, some read transposed.
TEST(PackWeight, packs_many_at_once) {
  constexpr WeightLayout kFma{.operand = ElementType::f32,
                              .offsets = 2,
                              .in_channels = 5,
                              .out_channels = 9,
                              .columns = 8,
                              .depth = 4};
  std::vector<Tensor> weights;
  std::vector<std::vector<std::byte>> images;
  PackWeightsArguments arguments;
  for (int i = 0; i < kMostPackedWeights; ++i) {
    const bool is_half = i % 3 != 0;
    const bool transpose = i % 3 == 2;
    const WeightLayout& layout = is_half ? kHalf : kFma;
    weights.push_back(
        is_half ? random_tensor(transpose ? Shape{3, 21, 74} : Shape{3, 37, 42}, DType::f16, i)
                : random_tensor(Shape{2, 5, 9}, DType::f32, i));
    images.emplace_back(static_cast<std::size_t>(packed_bytes(layout)), std::byte{0xff});
    arguments.weight[i] = {.layout = layout,
                           .weight = weights.back().raw(),
                           .packed = images.back().data(),
                           .source = layout.operand,
                           .transpose = transpose};
  }
  emulate({.blocks = 2, .blocks_y = kMostPackedWeights, .threads = 64}, pack_weights, arguments);
  for (int i = 0; i < kMostPackedWeights; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(images[at],
              pack_emulated(arguments.weight[i].layout, weights[at], arguments.weight[i].transpose))
        << i;
  }
}

}   // namespace
}   // namespace pumice
