// Runs tile kernels on the host, instruction by instruction, and says what must come out. What runs
// is the text that NVRTC compiles; only the instructions are emulated.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include <pumice/shared/tile_limits.h>
#include <pumice/skeleton/pack_weight.h>
#include <pumice/skeleton/tile_direct.h>
#include <pumice/skeleton/tile_fma.h>
#include <pumice/skeleton/tile_mma_sync.h>
#include <pumice/skeleton/tile_wgmma.h>

#include "kernels/host_tile_map.hpp"
#include "kernels/problem.hpp"
#include "kernels/storage_type.hpp"
#include "support/device_emulator.hpp"

namespace pumice::test {

/// Values that the instruction multiplies exactly.
inline Tensor operand_tensor(Shape shape, ElementType element, std::uint64_t seed) {
  Tensor tensor = random_tensor(shape, storage_type(element), seed);
  if (element == ElementType::tf32) {
    for (float& value : tensor.span<float>())
      value = bits_to_float(round_to_tf32(float_to_bits(value)));
  }
  return tensor;
}

/// Columns [first, first + count) of a matrix.
inline Tensor columns_of(const Tensor& matrix, std::int64_t first, std::int64_t count) {
  Tensor result(Shape{matrix.rows(), count}, matrix.dtype());
  const std::size_t bytes = size_of(matrix.dtype());
  for (std::int64_t row = 0; count > 0 && row < matrix.rows(); ++row) {
    std::memcpy(
        static_cast<std::byte*>(result.raw()) + static_cast<std::size_t>(row * count) * bytes,
        static_cast<const std::byte*>(matrix.raw()) +
            static_cast<std::size_t>(row * matrix.extent(1) + first) * bytes,
        static_cast<std::size_t>(count) * bytes);
  }
  return result;
}

inline Tensor poisoned_tensor(Shape shape, DType dtype) {
  Tensor tensor(shape, dtype);
  if (tensor.bytes() > 0) std::memset(tensor.raw(), 0xff, tensor.bytes());   // NaN in every type
  return tensor;
}

inline std::vector<std::byte> pack_emulated(const WeightLayout& layout, const Tensor& weight,
                                            bool transpose = false, bool mirror = false) {
  std::vector<std::byte> result(static_cast<std::size_t>(packed_bytes(layout)), std::byte{0xff});
  const PackWeightArguments arguments{.layout = layout,
                                      .weight = weight.raw(),
                                      .packed = result.data(),
                                      .source = layout.operand,
                                      .transpose = transpose,
                                      .mirror = mirror};
  emulate({.blocks = 2, .threads = 64}, pack_weight, arguments);
  return result;
}

template <TileSpec S> void run_skeleton(const TileArguments& arguments) {
  if constexpr (S.instruction == Instruction::wgmma) {
    tile_wgmma<S>(arguments);
  } else if constexpr (S.instruction == Instruction::fma) {
    tile_fma<S>(arguments);
  } else if constexpr (S.resident_offsets > 0) {
    tile_direct<S>(arguments);
  } else {
    tile_mma_sync<S>(arguments);
  }
}

template <TileSpec S>
void emulate_tile(const TileArguments& arguments, std::int64_t tiles,
                  RunOrder order = RunOrder::ascending) {
  emulate({.blocks = tile_blocks(S, tiles, 1),
           .blocks_y = S.groups * column_tiles(S),
           .threads = threads(S),
           .shared_bytes = shared_bytes(S)},
          run_skeleton<S>, arguments, {.blocks = order, .threads = order});
}

/// The tensors of one convolution, with everything that its spec has.
template <TileSpec S> struct EmulatedConvolution {
  static constexpr std::int64_t kIn = std::int64_t{S.groups} * S.in_channels;
  static constexpr std::int64_t kOut = std::int64_t{S.groups} * S.out_channels;

  explicit EmulatedConvolution(const KernelMapView& pairs)
      : map(pairs),
        input(operand_tensor(Shape{map.in_rows, kIn}, S.operand, 1)),
        weight(operand_tensor(Shape{map.offsets, S.in_channels, kOut}, S.operand, 2)),
        packed(pack_emulated(weight_layout(S, static_cast<std::int32_t>(map.offsets)), weight)),
        output(poisoned_tensor(Shape{map.out_rows, kOut}, storage_type(S.output))) {
    arguments.input = input.raw();
    arguments.weight = packed.data();
    arguments.output = output.raw();
    if constexpr (S.first_channels < S.in_channels) {
      first = columns_of(input, 0, S.first_channels);
      second = columns_of(input, S.first_channels, S.in_channels - S.first_channels);
      arguments.input = first.raw();
      arguments.second = second.raw();
    }
    if constexpr (S.shortcut_channels > 0) add_shortcut();
  }

  void add_shortcut() {
    shortcut = operand_tensor(Shape{map.out_rows, S.shortcut_channels}, S.operand, 3);
    shortcut_weight = operand_tensor(Shape{1, S.shortcut_channels, S.out_channels}, S.operand, 4);
    packed_shortcut = pack_emulated(shortcut_weight_layout(S), shortcut_weight);
    shortcut_first = columns_of(shortcut, 0, S.shortcut_first_channels);
    shortcut_second = columns_of(shortcut, S.shortcut_first_channels,
                                 S.shortcut_channels - S.shortcut_first_channels);
    arguments.shortcut = shortcut_first.raw();
    arguments.shortcut_second = shortcut_second.raw();
    arguments.shortcut_weight = packed_shortcut.data();
  }

  void add_epilogue(Activation activation, double slope = 0.25) {
    scale = random_tensor(Shape{kOut}, DType::f32, 5);
    shift = random_tensor(Shape{kOut}, DType::f32, 6);
    residual = random_tensor(output.shape(), output.dtype(), 7);
    arguments.epilogue = {.scale = scale.data<float>(),
                          .shift = shift.data<float>(),
                          .residual = residual.raw(),
                          .slope = static_cast<float>(slope),
                          .activation = activation};
  }

  void run(RunOrder order = RunOrder::ascending) {
    const HostTileMap tiles = host_tile_map(map, S.tile_rows);
    arguments.map = tiles.ref();
    emulate_tile<S>(arguments,
                    S.gather == Gather::identity ? (map.out_rows + S.tile_rows - 1) / S.tile_rows
                                                 : tiles.tiles(),
                    order);
  }

  Expected sums() const {
    Expected result = convolve(map, input, weight, {kIn, kOut, S.groups});
    if constexpr (S.shortcut_channels > 0) {
      const std::vector<double> x = doubles(shortcut), w = doubles(shortcut_weight);
      for (std::int64_t row = 0; row < map.out_rows; ++row) {
        for (std::int64_t n = 0; n < kOut; ++n) {
          for (std::int64_t c = 0; c < S.shortcut_channels; ++c) {
            result.add(static_cast<std::size_t>(row * kOut + n),
                       x[static_cast<std::size_t>(row * S.shortcut_channels + c)] *
                           w[static_cast<std::size_t>(c * kOut + n)]);
          }
        }
      }
    }
    return result;
  }

  /// What the output must hold. Activations stretch errors by less than 1.2.
  Expected expected() const {
    Expected result = sums();
    if (arguments.epilogue.scale == nullptr) return result;
    const std::vector<double> a = doubles(scale), b = doubles(shift), r = doubles(residual);
    for (std::size_t i = 0; i < result.value.size(); ++i) {
      const std::size_t n = i % static_cast<std::size_t>(kOut);
      const double x = result.value[i] * a[n] + b[n] + r[i];
      result.value[i] = activated(x);
      result.magnitude[i] =
          1.2 * (result.magnitude[i] * std::abs(a[n]) + std::abs(b[n]) + std::abs(r[i]) + 1);
    }
    return result;
  }

  double activated(double x) const {
    switch (arguments.epilogue.activation) {
      case Activation::none: return x;
      case Activation::relu: return x < 0 ? 0 : x;
      case Activation::leaky_relu:
        return x < 0 ? x * static_cast<double>(arguments.epilogue.slope) : x;
      case Activation::silu: return x / (1 + std::exp(-x));
      case Activation::gelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      case Activation::sigmoid: return 1 / (1 + std::exp(-x));
      case Activation::tanh: return std::tanh(x);
    }
    return x;
  }

  KernelMapView map;
  Tensor input, weight, first, second;
  Tensor shortcut, shortcut_weight, shortcut_first, shortcut_second;
  Tensor scale, shift, residual;
  std::vector<std::byte> packed, packed_shortcut;
  Tensor output;
  TileArguments arguments;
};

template <TileSpec S>
void expect_convolves(const KernelMapView& map, RunOrder order = RunOrder::ascending) {
  EmulatedConvolution<S> convolution(map);
  convolution.run(order);
  expect_close(convolution.output, convolution.expected(), 16);
}

}   // namespace pumice::test
