// Register tiles of the sparse and dense products, in f32 and f64.
//
// Measured on Zen 3 (AVX2): 6 rows × 2 vectors reach 76–84 GFLOP/s a core from 96 channels on,
// which is what OpenBLAS' SGEMM reaches there on dense operands of the same size.
#include "kernels/cpu/multiply.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/multiply.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/highway.h>

#if defined(__clang__)
#define PUMICE_UNROLL _Pragma("clang loop unroll(full)")
#define PUMICE_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define PUMICE_UNROLL _Pragma("GCC unroll 8")
#define PUMICE_NO_UNROLL _Pragma("GCC unroll 1")
#endif

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One channel: a broadcast element of each row times the vectors of the panels.
template <std::size_t kRows, std::size_t kVectors, class D, class V, class T = hn::TFromD<D>>
HWY_INLINE void step(D d, V (&sums)[kRows][kVectors], const T* const (&rows)[kRows], const T* panel,
                     std::int64_t panel_stride, std::int64_t channel) {
  constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  constexpr std::size_t kPerPanel = kVectors == 1 ? 1 : 2;
  V weights[kVectors];
  PUMICE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    constexpr auto at = [](std::size_t index) { return static_cast<std::int64_t>(index); };
    weights[v] = hn::LoadU(d, panel + at(v / kPerPanel) * panel_stride + channel * 2 * kLanes +
                                  at(v % kPerPanel) * kLanes);
  }
  PUMICE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const V x = hn::Set(d, rows[r][channel]);
    PUMICE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[r][v] = hn::MulAdd(x, weights[v], sums[r][v]);
  }
}

template <class T, std::size_t kRows, std::size_t kVectors>
void multiply(const void* const* input, std::int64_t input_offset, void* const* sums,
              std::int64_t sums_offset, const void* panels, std::int64_t panel_stride,
              std::int64_t channels) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  V tile[kRows][kVectors];
  const T* rows[kRows];
  const auto* panel = static_cast<const T*>(panels);
  PUMICE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const T* from = static_cast<const T*>(sums[r]) + sums_offset;
    PUMICE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v)
      tile[r][v] = hn::LoadU(d, from + v * kLanes);
    rows[r] = static_cast<const T*>(input[r]) + input_offset;
  }
  // Not unrolled: over four channels GCC 12 moves FMAs apart from their operands, 91 instead of 99
  // GFLOP/s with everything in the first-level cache (hand-written assembly: 100).
  PUMICE_NO_UNROLL
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    step(d, tile, rows, panel, panel_stride, channel);
  }
  PUMICE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    T* to = static_cast<T*>(sums[r]) + sums_offset;
    PUMICE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::StoreU(tile[r][v], d, to + v * kLanes);
  }
}

template <class T, std::size_t kRows, int kWidest> void add_rows(MicroKernels& table) {
  auto& row = table.multiply[kRows - 1];
  row[0] = multiply<T, kRows, 1>;
  row[1] = multiply<T, kRows, 2>;
  if constexpr (kWidest >= 4) row[2] = multiply<T, kRows, 4>;
  if constexpr (kWidest >= 8) row[3] = multiply<T, kRows, 8>;
  table.widest[kRows - 1] = kWidest;
}

template <class T> void add_multiply(MicroKernels& table) {
#if HWY_TARGET == HWY_AVX2
  constexpr bool kManyRegisters = false;
#else
  constexpr bool kManyRegisters = true;
#endif
  table.lanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  add_rows<T, 1, 8>(table);
  add_rows<T, 2, 4>(table);
  add_rows<T, 3, 4>(table);
  add_rows<T, 4, kManyRegisters ? 4 : 2>(table);
  add_rows<T, 5, kManyRegisters ? 4 : 2>(table);
  add_rows<T, 6, kManyRegisters ? 4 : 2>(table);
  table.target = hwy::TargetName(HWY_TARGET);
}

void multiply_f32(MicroKernels& table) {
  add_multiply<float>(table);
}
void multiply_f64(MicroKernels& table) {
  add_multiply<double>(table);
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pumice::cpu {

HWY_EXPORT(multiply_f32);
HWY_EXPORT(multiply_f64);

void add_multiply_f32(MicroKernels& table) {
  HWY_DYNAMIC_DISPATCH(multiply_f32)(table);
}
void add_multiply_f64(MicroKernels& table) {
  HWY_DYNAMIC_DISPATCH(multiply_f64)(table);
}

}   // namespace pumice::cpu
#endif
