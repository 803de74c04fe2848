// Matrix instructions of one warp: fragments out of shared memory and products of them.
//
//   accumulator of 16 × 8        operand A of 16 × 32 bytes         operand B of 8 × 32 bytes
//   lane l: rows l/4, l/4 + 8    a[0] rows 0…7, bytes 0…15          b[0] columns 0…7, bytes 0…15
//           columns 2(l%4), +1   a[1] rows 8…15, bytes 0…15         b[1] columns 0…7, bytes 16…31
//                                a[2], a[3] bytes 16…31
//
// 32 bytes are 16 channels of f16 and bf16 or 8 of tf32: in bytes, all types load alike.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_spec.h>
#if !defined(__CUDACC__)
#include <pumice/instructions_host.h>
#endif

namespace pumice {

#if defined(__CUDACC__)

/// Four 8 × 16-byte matrices; lane l gives the address of row l % 8 of matrix l / 8.
PUMICE_DEVICE void load_matrices(uint32_t (&matrix)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
               : "r"(address)
               : "memory");
}

/// The same, each matrix transposed (16-bit elements only).
PUMICE_DEVICE void load_matrices_transposed(uint32_t (&matrix)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
               : "r"(address)
               : "memory");
}

#define PUMICE_MMA(shape, type)                                                       \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type                \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])               \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

/// sum += a · b over 32 bytes of channels.
template <ElementType kOperand>
PUMICE_DEVICE void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (kOperand == ElementType::f16) {
    PUMICE_MMA("m16n8k16", "f16");
  } else if constexpr (kOperand == ElementType::bf16) {
    PUMICE_MMA("m16n8k16", "bf16");
  } else {
    PUMICE_MMA("m16n8k8", "tf32");
  }
}

#undef PUMICE_MMA

#else

inline void load_matrices(uint32_t (&matrix)[4], uint32_t address) {
  emulator::load_matrices(matrix, address, false);
}
inline void load_matrices_transposed(uint32_t (&matrix)[4], uint32_t address) {
  emulator::load_matrices(matrix, address, true);
}
template <ElementType kOperand>
void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  emulator::multiply(kOperand, sum, a, b0, b1);
}

#endif

}   // namespace pumice
