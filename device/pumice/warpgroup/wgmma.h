// Products of one warpgroup (128 threads) with both operands in shared memory: sm_90a's wgmma.
//
//   sums [64 × columns] += a [64 × 32 bytes] · b [columns × 32 bytes]ᵀ      (K-major: rows along K)
//
// Warp w of the warpgroup holds rows 16 w … 16 w + 15 in the fragments of warp/matrix.h. Operands
// are named by descriptors:
//
//   bits 0–13 address / 16 │ 16–29 leading offset / 16 │ 32–45 stride between 8-row groups / 16
//   62–63 swizzle: 1 128 bytes, 2 64 bytes, 3 32 bytes
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_spec.h>
#if defined(__CUDACC__)
#include <pumice/warpgroup/wgmma_operands.h>
#else
#include <pumice/instructions_host.h>
#endif

namespace pumice {

PUMICE_SHARED constexpr uint64_t swizzle_code(int32_t row_bytes) {
  return row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
}

/// Rows of kRowBytes along K, swizzled; the next 32 bytes of K are at `address` + 32.
template <int32_t kRowBytes> PUMICE_DEVICE uint64_t along_k(uint32_t address) {
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{1} << 16 |
         uint64_t{8 * kRowBytes >> 4} << 32 | swizzle_code(kRowBytes) << 62;
}

/// Rows of 128 bytes across K, swizzled, one for each index of K: the operand is read transposed
/// (16-bit types only). Columns beyond 64 lie `block_bytes` further on; the next 16 rows of K are
/// at `address` + 2048.
PUMICE_DEVICE uint64_t across_k(uint32_t address, uint32_t block_bytes) {
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{block_bytes >> 4} << 16 |
         uint64_t{1024 >> 4} << 32 | swizzle_code(128) << 62;
}

#if defined(__CUDACC__)

/// Orders registers and shared memory before the products that follow.
PUMICE_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Closes the group of products started since the last call.
PUMICE_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most kGroups groups are still running.
template <int32_t kGroups> PUMICE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

/// What ordinary copies wrote to shared memory is seen by wgmma. Costs 0–3 % and is kept.
PUMICE_DEVICE void wgmma_copy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int32_t kCount> PUMICE_DEVICE void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int32_t kCount> PUMICE_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// wgmma for a number of columns. `add` starts sums += a · bᵀ; kAcross: both operands are given by
/// across_k. `hold` keeps the compiler from moving the sums across products that are under way.
template <int32_t kColumns> struct Wgmma;

#define PUMICE_SUM(j) "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
#define PUMICE_WGMMA_ASM(n, shape, type, major)                                                    \
  asm volatile(                                                                                    \
      "{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\n"                                                   \
      "wgmma.mma_async.sync.aligned.m64n" #n shape ".f32." type "." type " {" PUMICE_REGISTERS_##n \
      "}, " PUMICE_OPERANDS_##n ", p, 1, 1" major ";\n}"                                           \
      : PUMICE_SUMS_##n                                                                            \
      : "l"(a), "l"(b))
#define PUMICE_WGMMA(n)                                                              \
  template <> struct Wgmma<n> {                                                      \
    PUMICE_DEVICE static void hold(float (&sums)[n / 8][4]) {                        \
      asm volatile("" : PUMICE_SUMS_##n : : "memory");                               \
    }                                                                                \
    template <ElementType kOperand, bool kAcross = false>                            \
    PUMICE_DEVICE static void add(float (&sums)[n / 8][4], uint64_t a, uint64_t b) { \
      if constexpr (kOperand == ElementType::tf32) {                                 \
        PUMICE_WGMMA_ASM(n, "k8", "tf32", "");                                       \
      } else if constexpr (kOperand == ElementType::f16 && !kAcross) {               \
        PUMICE_WGMMA_ASM(n, "k16", "f16", ", 0, 0");                                 \
      } else if constexpr (kOperand == ElementType::f16) {                           \
        PUMICE_WGMMA_ASM(n, "k16", "f16", ", 1, 1");                                 \
      } else if constexpr (!kAcross) {                                               \
        PUMICE_WGMMA_ASM(n, "k16", "bf16", ", 0, 0");                                \
      } else {                                                                       \
        PUMICE_WGMMA_ASM(n, "k16", "bf16", ", 1, 1");                                \
      }                                                                              \
    }                                                                                \
  };

// A kernel needs one of these; the generated source names it, which keeps the others from being
// parsed.
#if defined(PUMICE_WGMMA_COLUMNS)
#define PUMICE_WGMMA_EXPANDED(n) PUMICE_WGMMA(n)
PUMICE_WGMMA_EXPANDED(PUMICE_WGMMA_COLUMNS)
#undef PUMICE_WGMMA_EXPANDED
#else
PUMICE_WGMMA(8)
PUMICE_WGMMA(16)
PUMICE_WGMMA(24)
PUMICE_WGMMA(32)
PUMICE_WGMMA(40)
PUMICE_WGMMA(48)
PUMICE_WGMMA(56)
PUMICE_WGMMA(64)
PUMICE_WGMMA(72)
PUMICE_WGMMA(80)
PUMICE_WGMMA(88)
PUMICE_WGMMA(96)
PUMICE_WGMMA(104)
PUMICE_WGMMA(112)
PUMICE_WGMMA(120)
PUMICE_WGMMA(128)
PUMICE_WGMMA(136)
PUMICE_WGMMA(144)
PUMICE_WGMMA(152)
PUMICE_WGMMA(160)
PUMICE_WGMMA(168)
PUMICE_WGMMA(176)
PUMICE_WGMMA(184)
PUMICE_WGMMA(192)
PUMICE_WGMMA(200)
PUMICE_WGMMA(208)
PUMICE_WGMMA(216)
PUMICE_WGMMA(224)
PUMICE_WGMMA(232)
PUMICE_WGMMA(240)
PUMICE_WGMMA(248)
PUMICE_WGMMA(256)
#endif

#undef PUMICE_WGMMA
#undef PUMICE_WGMMA_ASM
#undef PUMICE_SUM

#else   // the host

inline void wgmma_fence() {}
inline void wgmma_commit() {
  emulator::wgmma_commit();
}
template <int32_t kGroups> void wgmma_wait() {
  emulator::wgmma_wait(kGroups);
}
inline void wgmma_copy_fence() {}
template <int32_t kCount> void keep_registers() {}
template <int32_t kCount> void take_registers() {}

template <int32_t kColumns> struct Wgmma {
  static void hold(float (&)[kColumns / 8][4]) {}
  template <ElementType kOperand, bool kAcross = false>
  static void add(float (&sums)[kColumns / 8][4], uint64_t a, uint64_t b) {
    emulator::wgmma(kOperand, kAcross, kColumns, &sums[0][0], a, b);
  }
};

#endif

}   // namespace pumice
