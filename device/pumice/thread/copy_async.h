// Copies from global to shared memory that run while the thread goes on (sm_80 and later).
#pragma once

#include <pumice/platform.h>
#if !defined(__CUDACC__)
#include <pumice/instructions_host.h>
#endif

namespace pumice {

/// Copies kBytes (16, 8 or 4), or writes as many zeros when `row` is negative; nothing is read
/// then. 16-byte copies bypass the first-level cache: rows of a tile sorted by mask hardly repeat.
template <int32_t kBytes>
PUMICE_DEVICE void copy_async_of_row(uint32_t to, const void* from, int32_t row) {
  static_assert(kBytes == 16 || kBytes == 8 || kBytes == 4);
#if !defined(__CUDACC__)
  emulator::copy_async(to, from, kBytes, row >= 0);
#else
  if constexpr (kBytes == 16) {
    asm volatile(
        "{ .reg .pred absent; setp.lt.s32 absent, %2, 0;\n"
        "  cp.async.cg.shared.global.L2::128B [%0], [%1], 16, absent; }" ::"r"(to),
        "l"(from), "r"(row)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred absent; setp.lt.s32 absent, %3, 0;\n"
        "  cp.async.ca.shared.global [%0], [%1], %2, absent; }" ::"r"(to),
        "l"(from), "n"(kBytes), "r"(row)
        : "memory");
  }
#endif
}

/// Copies kBytes.
template <int32_t kBytes> PUMICE_DEVICE void copy_async(uint32_t to, const void* from) {
  copy_async_of_row<kBytes>(to, from, 0);
}

/// Two bytes, at once: there is no asynchronous copy of so few.
PUMICE_DEVICE void copy_two_bytes_of_row(uint32_t to, const void* from, int32_t row) {
  const uint16_t value = row >= 0 ? *static_cast<const uint16_t*>(from) : uint16_t{0};
#if !defined(__CUDACC__)
  emulator::store_shared(to, value);
#else
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
#endif
}

/// Closes the group of copies started since the last call.
PUMICE_DEVICE void copy_commit() {
#if !defined(__CUDACC__)
  emulator::copy_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most kGroups of this thread's groups are still running.
template <int32_t kGroups> PUMICE_DEVICE void copy_wait() {
#if !defined(__CUDACC__)
  emulator::copy_wait(kGroups);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

}   // namespace pumice
