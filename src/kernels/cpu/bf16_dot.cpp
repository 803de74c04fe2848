// The register tile for AVX-512-BF16 (Zen 4 and later, Cooper Lake, Sapphire Rapids). Highway 1.0
// has no target for it, so the intrinsics stand here.
//
// One instruction multiplies a pair of neighbouring channels with a pair of weights and adds both
// products to a float. It adds without FMA's single rounding and flushes
// subnormals, so results differ in the last bits from processors without it; for one processor they
// are the same for any tiling and number of threads, as everywhere.
#include "kernels/cpu/multiply.hpp"

#if defined(__x86_64__)

#include <cstring>

#include <immintrin.h>

#if defined(__clang__)
#define PUMICE_UNROLL _Pragma("clang loop unroll(full)")
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))), \
                             apply_to = function)
#else
#define PUMICE_UNROLL _Pragma("GCC unroll 8")
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")
#endif

namespace pumice::cpu {
namespace {

constexpr std::int64_t kLanes = 16;   // floats, or pairs of bf16

inline __m512bh as_pairs(__m512i bits) {
  __m512bh pairs;
  std::memcpy(&pairs, &bits, sizeof(pairs));
  return pairs;
}

template <std::size_t kRows, std::size_t kVectors>
void multiply_pairs(const void* const* input, std::int64_t input_offset, void* const* sums,
                    std::int64_t sums_offset, const void* panels, std::int64_t panel_stride,
                    std::int64_t channels) {
  constexpr std::size_t kPerPanel = kVectors == 1 ? 1 : 2;
  constexpr std::int64_t kPanelPairs = 2 * kLanes;
  __m512 tile[kRows][kVectors];
  const BFloat16* rows[kRows];
  const auto* panel = static_cast<const BFloat16*>(panels);
  PUMICE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const float* from = static_cast<const float*>(sums[r]) + sums_offset;
    PUMICE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      tile[r][v] = _mm512_loadu_ps(from + static_cast<std::int64_t>(v) * kLanes);
    }
    rows[r] = static_cast<const BFloat16*>(input[r]) + input_offset;
  }
  for (std::int64_t channel = 0; channel < channels; channel += 2) {
    __m512bh weights[kVectors];
    PUMICE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto in_panel = static_cast<std::int64_t>(v % kPerPanel) * kLanes;
      const auto which = static_cast<std::int64_t>(v / kPerPanel) * panel_stride;
      weights[v] =
          as_pairs(_mm512_loadu_si512(panel + which + channel * kPanelPairs + 2 * in_panel));
    }
    PUMICE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      std::int32_t pair;
      std::memcpy(&pair, rows[r] + channel, sizeof(pair));
      const __m512bh x = as_pairs(_mm512_set1_epi32(pair));
      PUMICE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) {
        tile[r][v] = _mm512_dpbf16_ps(tile[r][v], x, weights[v]);
      }
    }
  }
  PUMICE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    float* to = static_cast<float*>(sums[r]) + sums_offset;
    PUMICE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(to + static_cast<std::int64_t>(v) * kLanes, tile[r][v]);
    }
  }
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

template <std::size_t kRows, int kWidest> void add_rows(MicroKernels& table) {
  auto& row = table.multiply[kRows - 1];
  row[0] = multiply_pairs<kRows, 1>;
  row[1] = multiply_pairs<kRows, 2>;
  row[2] = multiply_pairs<kRows, 4>;
  if constexpr (kWidest >= 8) row[3] = multiply_pairs<kRows, 8>;
  table.widest[kRows - 1] = kWidest;
}

MicroKernels make_table() {
  MicroKernels table = bf16_pair_table("AVX512_BF16", 2);
  add_rows<1, 8>(table);
  add_rows<2, 4>(table);
  add_rows<3, 4>(table);
  add_rows<4, 4>(table);
  add_rows<5, 4>(table);
  add_rows<6, 4>(table);
  return table;
}

bool available() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

}   // namespace

const MicroKernels* bf16_dot_kernels() {
  static const MicroKernels table = available() ? make_table() : MicroKernels{};
  return table.lanes > 0 ? &table : nullptr;
}

}   // namespace pumice::cpu

#else

namespace pumice::cpu {

const MicroKernels* bf16_dot_kernels() {
  return nullptr;
}

}   // namespace pumice::cpu

#endif
