// Elementwise kernels and copies of columns, beside loops over the same numbers.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <pumice/ops/columns.h>
#include <pumice/ops/elementwise.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/half.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/folded_norm.hpp>

#include "support/device_emulator.hpp"

namespace pumice::test {
namespace {

struct Storage {
  DType type;
  ElementType element;
};
constexpr Storage kStorages[] = {{DType::f32, ElementType::f32},
                                 {DType::f16, ElementType::f16},
                                 {DType::bf16, ElementType::bf16}};
constexpr std::int64_t kSizes[] = {0, 1, 31, 33, 65537};

Tensor values(std::int64_t size, DType type, std::uint64_t seed) {
  Random random(seed);
  Tensor result({size}, DType::f32);
  for (float& value : result.span<float>())
    value = static_cast<float>(random.uniform(-4, 4));
  return result.to(type);
}

EmulatedShape shape_for(std::int64_t elements) {
  return {.blocks = (elements + kElementsPerBlock - 1) / kElementsPerBlock,
          .threads = kElementThreads};
}

void expect_same_bits(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.bytes(), expected.bytes());
  if (actual.bytes() > 0) {
    EXPECT_EQ(std::memcmp(actual.raw(), expected.raw(), actual.bytes()), 0);
  }
}

TEST(DeviceElementwise, CombinesElementsOfEveryTypeAtAnySize) {
  for (const Storage& storage : kStorages) {
    for (const std::int64_t size : kSizes) {
      const Tensor left = values(size, storage.type, 1);
      const Tensor right = values(size, storage.type, 2);
      const Tensor a = left.to(DType::f32);
      const Tensor b = right.to(DType::f32);
      for (const Combination combination :
           {Combination::add, Combination::subtract, Combination::multiply}) {
        Tensor expected({size}, DType::f32);
        for (std::int64_t i = 0; i < size; ++i) {
          const float x = a.data<float>()[i];
          const float y = b.data<float>()[i];
          expected.data<float>()[i] = combination == Combination::add        ? x + y
                                      : combination == Combination::subtract ? x - y
                                                                             : x * y;
        }
        Tensor out({size}, storage.type);
        emulate(shape_for(size), combine_elements,
                CombineArguments{left.raw(), right.raw(), out.raw(), size, storage.element,
                                 combination});
        expect_same_bits(out, expected.to(storage.type));
      }
    }
  }
}

TEST(DeviceElementwise, ConvertsBetweenTypesWithOneRounding) {
  for (const Storage& from : kStorages) {
    for (const Storage& to : kStorages) {
      for (const std::int64_t size : kSizes) {
        const Tensor in = values(size, from.type, 3);
        Tensor out({size}, to.type);
        emulate(shape_for(size), convert_elements,
                ConvertArguments{in.raw(), out.raw(), size, 1.0f, from.element, to.element});
        expect_same_bits(out, in.to(to.type));
      }
    }
  }
}

TEST(DeviceElementwise, AppliesActivationsAndTheirGradients) {
  const std::int64_t size = 4099;
  const Tensor in = values(size, DType::f32, 4);
  const Tensor gradient = values(size, DType::f32, 5);
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::leaky_relu, Activation::silu,
        Activation::gelu, Activation::sigmoid, Activation::tanh}) {
    Tensor out({size}, DType::f32);
    const auto check = [&](const Tensor& expected) {
      for (std::int64_t i = 0; i < size; ++i) {
        // expf, erff and tanhf differ by a few units in the last place.
        const float wanted = expected.data<float>()[i];
        EXPECT_NEAR(out.data<float>()[i], wanted, 2e-6f * std::max(1.0f, std::abs(wanted)));
      }
    };
    ActivateArguments arguments{in.raw(), nullptr,          out.raw(), size,
                                0.1f,     ElementType::f32, activation};
    emulate(shape_for(size), activate_elements, arguments);
    check(activate(in, activation, 0.1));
    arguments.gradient = gradient.raw();
    emulate(shape_for(size), activate_elements, arguments);
    check(activation_gradient(in, gradient, activation, 0.1));
  }
}

TEST(DeviceElementwise, FoldsANormAsTheCpuDoesAndAppliesIt) {
  const std::int64_t channels = 37;
  const Tensor weight = values(channels, DType::f32, 6);
  const Tensor bias = values(channels, DType::f32, 7);
  const Tensor mean = values(channels, DType::f32, 8);
  const Tensor before = values(channels, DType::f32, 9);
  Tensor variance = values(channels, DType::f32, 10);
  for (float& value : variance.span<float>())
    value = std::abs(value);
  const ScaleShift expected = fold_batch_norm(mean, variance, weight, bias, before, 1e-3);
  Tensor scale({channels}, DType::f32);
  Tensor shift({channels}, DType::f32);
  const auto fold = [](const FoldArguments& norm) {
    emulate({.blocks = 1, .threads = kElementThreads}, fold_norms, FoldNormsArguments{{norm}});
  };
  fold({weight.data<float>(), bias.data<float>(), mean.data<float>(), variance.data<float>(),
        before.data<float>(), scale.data<float>(), shift.data<float>(), 1e-3,
        static_cast<std::int32_t>(channels)});
  expect_same_bits(scale, expected.scale);
  expect_same_bits(shift, expected.shift);
  const Tensor narrow[] = {weight.to(DType::f16), bias.to(DType::f16), mean.to(DType::bf16),
                           variance.to(DType::bf16), before.to(DType::f16)};
  const ScaleShift of_narrow =
      fold_batch_norm(narrow[2], narrow[3], narrow[0], narrow[1], narrow[4], 1e-3);
  fold({narrow[0].raw(), narrow[1].raw(), narrow[2].raw(), narrow[3].raw(), narrow[4].raw(),
        scale.data<float>(), shift.data<float>(), 1e-3, static_cast<std::int32_t>(channels),
        ElementType::f16, ElementType::bf16, ElementType::f16});
  expect_same_bits(scale, of_narrow.scale);
  expect_same_bits(shift, of_narrow.shift);

  const std::int64_t elements = 113 * channels;
  const Tensor in = values(elements, DType::f32, 11);
  Tensor out({elements}, DType::f32);
  emulate(shape_for(elements), affine_elements,
          AffineArguments{in.raw(), out.raw(), scale.data<float>(), shift.data<float>(), elements,
                          channels, ElementType::f32});
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::int64_t c = i % channels;
    const float wanted = in.data<float>()[i] * scale.data<float>()[c] + shift.data<float>()[c];
    EXPECT_NEAR(out.data<float>()[i], wanted, 1e-5f * std::max(1.0f, std::abs(wanted)));
  }
}

TEST(DeviceElementwise, JoinsAndCutsColumnsOfAnyWidth) {
  for (const auto& [left, right] : {std::pair{96, 32}, {3, 5}, {1, 7}, {64, 64}, {2, 2}}) {
    for (const std::int64_t rows : {0, 1, 33, 1025}) {
      const std::int64_t both = left + right;
      const Tensor a = values(rows * left, DType::f16, 12);
      const Tensor b = values(rows * right, DType::f16, 13);
      Tensor wide({rows * both}, DType::f16);
      Tensor a_again({rows * left}, DType::f16);
      Tensor b_again({rows * right}, DType::f16);
      const auto run = [&](const ColumnPart& first, const ColumnPart& second, int copy_bytes) {
        ColumnArguments arguments{.rows = rows, .parts = 2, .copy_bytes = copy_bytes};
        arguments.part[0] = first;
        arguments.part[1] = second;
        const auto blocks_of = [&](const ColumnPart& part) {
          return (part.width / copy_bytes * rows + kElementThreads - 1) / kElementThreads;
        };
        arguments.part[1].first_block = blocks_of(first);
        emulate({.blocks = blocks_of(first) + blocks_of(second), .threads = kElementThreads},
                copy_columns, arguments);
      };
      auto* const bytes = static_cast<std::byte*>(wide.raw());
      for (const int copy_bytes : {16, 4, 2}) {
        if (left * 2 % copy_bytes != 0 || right * 2 % copy_bytes != 0) continue;
        run({a.raw(), bytes, left * 2, both * 2, left * 2},
            {b.raw(), bytes + left * 2, right * 2, both * 2, right * 2}, copy_bytes);
        run({bytes, a_again.raw(), both * 2, left * 2, left * 2},
            {bytes + left * 2, b_again.raw(), both * 2, right * 2, right * 2}, copy_bytes);
        expect_same_bits(a_again, a);
        expect_same_bits(b_again, b);
        for (std::int64_t row = 0; row < rows; ++row) {
          EXPECT_EQ(std::memcmp(bytes + row * both * 2,
                                static_cast<const std::byte*>(a.raw()) + row * left * 2,
                                static_cast<std::size_t>(left) * 2),
                    0);
        }
      }
    }
  }
}

}   // namespace
}   // namespace pumice::test
