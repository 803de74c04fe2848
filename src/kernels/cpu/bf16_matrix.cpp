// Products of bf16 by AMX (Sapphire Rapids and later): tiles of 16 × 32 times 32 × 16 elements.
//
//   rows of the block ──copy──▶ matrix [rows, channels]          panel: [channels / 2][2 × 16][2]
//                                 16 × 32 tiles  ×  32 × 16 tiles
//                                        = 2 × 2 tiles of float, which start at 0
//   sums[r] += row r of the product
//
// A tile wants its rows at one distance from each other, so the block's rows are copied, which
// costs a tenth of the product at 96 channels. A panel has the layout that the instruction reads
// already. Sums of an output are those of whole pairs added in their order, so how pairs are
// grouped never shows in the bits of a result; subnormals are flushed.
#include "kernels/cpu/multiply.hpp"

#if defined(__x86_64__) && defined(__linux__)

#include <algorithm>
#include <array>
#include <cstring>

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/scratch.hpp"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,amx-tile,amx-bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,amx-tile,amx-bf16")
#endif

namespace pumice::cpu {
namespace {

constexpr std::int64_t kLanes = 16;   // floats of a vector, rows and columns of a tile
constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kTileChannels = 32;
constexpr std::int64_t kPanel = 2 * kLanes;
constexpr std::int64_t kPanelPitch = kPanel * 2 * 2;   // bytes of a pair of channels in a panel

/// All eight tiles are 16 rows of 64 bytes: 0–3 sums, 4–5 input, 6–7 weights.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// What one call of `multiply_tiles` leaves behind: 2 × 2 tiles.
struct alignas(64) Product {
  float rows[2 * kTileRows][kPanel];
};
constexpr std::int64_t kProductPitch = kPanel * static_cast<std::int64_t>(sizeof(float));

/// product = input [32, channels] · panel; with `two_rows` unset the lower 16 rows are left out,
/// with `two_columns` unset the right 16 columns.
void multiply_tiles(const BFloat16* input, std::int64_t channels, const std::byte* panel,
                    bool two_rows, bool two_columns, Product& product) {
  const std::int64_t pitch = channels * 2;   // bytes
  const BFloat16* lower = input + kTileRows * channels;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t channel = 0; channel < channels; channel += kTileChannels) {
    const std::byte* weights = panel + channel / 2 * kPanelPitch;
    _tile_loadd(4, input + channel, pitch);
    _tile_loadd(6, weights, kPanelPitch);
    _tile_dpbf16ps(0, 4, 6);
    if (two_columns) {
      _tile_loadd(7, weights + kPanelPitch / 2, kPanelPitch);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (!two_rows) continue;
    _tile_loadd(5, lower + channel, pitch);
    _tile_dpbf16ps(2, 5, 6);
    if (two_columns) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, &product.rows[0][0], kProductPitch);
  if (two_columns) _tile_stored(1, &product.rows[0][kLanes], kProductPitch);
  if (!two_rows) return;
  _tile_stored(2, &product.rows[kTileRows][0], kProductPitch);
  if (two_columns) _tile_stored(3, &product.rows[kTileRows][kLanes], kProductPitch);
}

void add_product_rows(const Product& product, const BlockRows& block, std::int64_t first,
                      std::int64_t rows, std::int64_t column, bool two_columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* to = static_cast<float*>(block.sums[first + r]) + block.sums_offset + column;
    const float* from = product.rows[r];
    _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_load_ps(from)));
    if (!two_columns) continue;
    _mm512_storeu_ps(to + kLanes,
                     _mm512_add_ps(_mm512_loadu_ps(to + kLanes), _mm512_load_ps(from + kLanes)));
  }
}

void multiply_rows(const BlockRows& block, const Panels& panels) {
  constexpr std::int64_t kStep = 2 * kTileRows;
  const std::int64_t channels = panels.channels;
  const std::int64_t padded_rows = (block.count + kStep - 1) / kStep * kStep;
  auto* matrix = thread_scratch<BFloat16>(ScratchUse::matrix, padded_rows * channels);
  for (std::int64_t r = 0; r < block.count; ++r) {
    std::memcpy(matrix + r * channels,
                static_cast<const BFloat16*>(block.input[r]) + block.input_offset,
                static_cast<std::size_t>(channels) * sizeof(BFloat16));
  }
  asm volatile("" ::: "memory");   // GCC's tile loads do not say that they read memory

  const TileConfig config;
  _tile_loadconfig(&config);
  Product product;
  const std::int64_t panel_bytes = channels * kPanel * panels.element_bytes;
  for (std::int64_t column = 0; column < panels.columns; column += kPanel) {
    const std::byte* panel = panels.data + column / kPanel * panel_bytes;
    const bool two_columns = panels.columns - column > kLanes;
    for (std::int64_t first = 0; first < block.count; first += kStep) {
      const std::int64_t rows = std::min(kStep, block.count - first);
      multiply_tiles(matrix + first * channels, channels, panel, rows > kTileRows, two_columns,
                     product);
      add_product_rows(product, block, first, rows, column, two_columns);
    }
  }
  _tile_release();
}

}   // namespace
}   // namespace pumice::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace pumice::cpu {
namespace {

/// Linux hands out the tiles' 8 KiB of registers to processes that ask.
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023;   // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;                // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool available() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  return (d & kBf16) != 0 && (d & kTile) != 0 && __builtin_cpu_supports("avx512f") != 0 &&
         tiles_granted();
}

MicroKernels make_table() {
  MicroKernels table = bf16_pair_table("AMX_BF16", kTileChannels);
  table.multiply_rows = multiply_rows;
  return table;
}

}   // namespace

const MicroKernels* bf16_matrix_kernels() {
  static const MicroKernels table = available() ? make_table() : MicroKernels{};
  return table.lanes > 0 ? &table : nullptr;
}

}   // namespace pumice::cpu

#else

namespace pumice::cpu {

const MicroKernels* bf16_matrix_kernels() {
  return nullptr;
}

}   // namespace pumice::cpu

#endif
