// Copies from global to shared memory that run while the thread goes on (sm_80 and later).
#pragma once

#include <pumice/platform.h>
#if !defined(__CUDACC__)
#include <pumice/instructions_host.h>
#endif

namespace pumice {

/// Copies kBytes (16, 8 or 4), or writes as many zeros when not `there`; nothing is read then.
/// 16-byte copies bypass the first-level cache: rows of a tile sorted by mask hardly repeat.
template <int32_t kBytes> PUMICE_DEVICE void copy_async(uint32_t to, const void* from, bool there) {
  static_assert(kBytes == 16 || kBytes == 8 || kBytes == 4);
#if !defined(__CUDACC__)
  emulator::copy_async(to, from, kBytes, there);
#else
  const int32_t bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
#endif
}

/// Two bytes, at once: there is no asynchronous copy of so few.
PUMICE_DEVICE void copy_two_bytes(uint32_t to, const void* from, bool there) {
  const uint16_t value = there ? *static_cast<const uint16_t*>(from) : uint16_t{0};
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
