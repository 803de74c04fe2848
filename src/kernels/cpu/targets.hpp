// Which instruction sets the kernels are compiled for. Include this instead of
// <hwy/foreach_target.h>, after defining HWY_TARGET_INCLUDE.
//
// Our baseline is x86-64-v3 (or AArch64), so nothing below AVX2 is built. AVX3_DL adds nothing that
// these kernels use, and vectors of a length unknown to the compiler (SVE) cannot be held in the
// register arrays of a microkernel; such processors run the NEON code.
#pragma once

#define HWY_DISABLE_PCLMUL_AES   // not part of x86-64-v3, and not used
#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   HWY_SCALAR | HWY_EMU128)

#include <hwy/foreach_target.h>
