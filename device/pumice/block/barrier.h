// Barriers in shared memory that count arrivals and bytes (sm_90), and barriers between some of a
// block's warps.
#pragma once

#include <pumice/platform.h>
#if !defined(__CUDACC__)
#include <pumice/instructions_host.h>
#endif

namespace pumice {

// A barrier is eight bytes at a shared address. Its phases end when `count` arrivals and all
// expected bytes are in; they have parity 0, 1, 0, 1, …

PUMICE_DEVICE void barrier_init(uint32_t barrier, int32_t count) {
#if defined(__CUDACC__)
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
#else
  emulator::barrier_init(barrier, count);
#endif
}

/// Makes freshly initialised barriers known to the copy engines. A block_sync follows.
PUMICE_DEVICE void barrier_init_fence() {
#if defined(__CUDACC__)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

PUMICE_DEVICE void barrier_arrive(uint32_t barrier) {
#if defined(__CUDACC__)
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
  emulator::barrier_arrive(barrier);
#endif
}

/// Arrives and announces bytes that bulk copies will bring.
PUMICE_DEVICE void barrier_arrive_expecting(uint32_t barrier, int32_t bytes) {
#if defined(__CUDACC__)
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#else
  emulator::barrier_arrive_expecting(barrier, bytes);
#endif
}

/// Arrives once the thread's asynchronous copies so far have landed. Such arrivals are part of the
/// barrier's count.
PUMICE_DEVICE void barrier_arrive_after_copies(uint32_t barrier) {
#if defined(__CUDACC__)
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
#else
  emulator::barrier_arrive_after_copies(barrier);
#endif
}

/// Waits until the phase of this parity has ended. A fresh barrier counts as having ended one of
/// parity 1.
PUMICE_DEVICE void barrier_wait(uint32_t barrier, uint32_t parity) {
#if defined(__CUDACC__)
  uint32_t done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
#else
  emulator::barrier_wait(barrier, parity);
#endif
}

/// Copies `bytes` (a multiple of 16) that lie together; the barrier counts them when they land.
PUMICE_DEVICE void copy_bulk(uint32_t to, const void* from, int32_t bytes, uint32_t barrier) {
#if defined(__CUDACC__)
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
#else
  emulator::copy_bulk(to, from, bytes, barrier);
#endif
}

/// Waits for kThreads threads of the block at barrier kNumber (1 to 15; 0 is block_sync's).
template <int32_t kNumber, int32_t kThreads> PUMICE_DEVICE void warps_sync() {
#if defined(__CUDACC__)
  asm volatile("bar.sync %0, %1;" ::"n"(kNumber), "n"(kThreads) : "memory");
#else
  emulator::warps_sync(kNumber, kThreads);
#endif
}

}   // namespace pumice
