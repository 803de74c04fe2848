// The one place where device code differs between NVRTC and the host compiler. Kernels are written
// once, in terms of what stands here; on the host the same names reach an emulator that runs every
// thread of a block as a fiber (tests/support/device_emulator.hpp), so that device code, barriers
// and warp collectives included, is tested under the sanitizers on a machine without a GPU.
//
//   PUMICE_KERNEL PUMICE_THREADS(256) void add_one(PUMICE_ARGUMENT(AddOne) a) {
//     wait_for_previous();
//     PUMICE_BLOCK_SHARED(uint32_t, total);
//     ...
//   }
//
// Every kernel waits: in a graph (src/jit/dependent_launch.hpp) its blocks may be there before the
// grid before it has ended. It begins with wait_for_previous(), so that nothing that another kernel
// may touch is read or written before; tiles wait later, and read first what was written before
// that grid (thread/read_ahead.h). tests/device/dependent_launch_test.cpp checks both.
//
// Warp collectives take all 32 lanes: whoever calls one calls it with the whole warp.
#pragma once

#include <pumice/shared/types.h>

#if defined(__CUDACC__)
#include <pumice/platform_cuda.h>
#else
#include <pumice/platform_host.h>
#endif

namespace pumice {

inline constexpr int kWarpThreads = 32;

/// `T[kSize]` under one name, for sizes that depend on a template parameter. NVRTC 12.4 crashes
/// where `kSize` is a local constant of a function template: give it the expression.
template <class T, int kSize> using Array = T[static_cast<unsigned>(kSize)];

PUMICE_DEVICE int lane_index() {
  return static_cast<int>(static_cast<unsigned>(thread_index()) % kWarpThreads);
}
PUMICE_DEVICE int warp_index() {
  return static_cast<int>(static_cast<unsigned>(thread_index()) / kWarpThreads);
}
/// Number of this thread among all of the grid's first axis.
PUMICE_DEVICE int64_t global_thread_index() {
  return int64_t{block_index()} * block_size() + thread_index();
}
/// The lanes before this one.
PUMICE_DEVICE uint32_t lanes_below() {
  return (uint32_t{1} << lane_index()) - 1;
}

}   // namespace pumice
