// Device intrinsics under NVRTC. See platform.h.
#pragma once

#include <pumice/shared/types.h>

#define PUMICE_KERNEL extern "C" __global__
#define PUMICE_THREADS(...) __launch_bounds__(__VA_ARGS__)   // threads, blocks at least at once
#define PUMICE_ARGUMENT(type) const __grid_constant__ type
#define PUMICE_DEVICE __device__ __forceinline__
#define PUMICE_BLOCK_SHARED(type, name) __shared__ type name
#define PUMICE_UNROLL _Pragma("unroll")
#define PUMICE_TEXT(text) #text
#define PUMICE_UNROLL_BY(times) _Pragma(PUMICE_TEXT(unroll times))
#define PUMICE_ROLLED _Pragma("unroll 1")

// Whether kernels can take part in dependent launches (src/jit/dependent_launch.hpp).
#if __CUDA_ARCH__ >= 900
#define PUMICE_DEPENDENT_LAUNCH 1
#else
#define PUMICE_DEPENDENT_LAUNCH 0
#endif
// What no kernel writes while this one runs may be read through the cache of constant data; a
// kernel that is there before the one before it has ended has no such memory.
#if PUMICE_DEPENDENT_LAUNCH
#define PUMICE_READ_ONLY_LOAD "ld.global"
#else
#define PUMICE_READ_ONLY_LOAD "ld.global.nc"
#endif

namespace pumice {

PUMICE_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
PUMICE_DEVICE int block_index() {
  return static_cast<int>(blockIdx.x);
}
PUMICE_DEVICE int block_index_y() {
  return static_cast<int>(blockIdx.y);
}
PUMICE_DEVICE int block_size() {
  return static_cast<int>(blockDim.x);
}
PUMICE_DEVICE int grid_size() {
  return static_cast<int>(gridDim.x);
}

/// Until all grids before this one have ended, and what they wrote can be read. By every thread,
/// first of all in a kernel, or as thread/read_ahead.h says.
PUMICE_DEVICE void wait_for_previous() {
#if PUMICE_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// This block no longer minds blocks of the next grid beside it, which wait for the end of this
/// one. What is written before or after is the same to them.
PUMICE_DEVICE void launch_next() {
#if PUMICE_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

PUMICE_DEVICE void block_sync() {
  __syncthreads();
}
PUMICE_DEVICE void warp_sync() {
  __syncwarp();
}
/// What was written before is seen by the host before what is written after.
PUMICE_DEVICE void fence_to_host() {
  __threadfence_system();
}

template <class T> PUMICE_DEVICE T warp_shuffle(T value, int lane) {
  return __shfl_sync(~0u, value, lane);
}
template <class T> PUMICE_DEVICE T warp_shuffle_up(T value, int delta) {
  return __shfl_up_sync(~0u, value, static_cast<unsigned>(delta));
}
template <class T> PUMICE_DEVICE T warp_shuffle_down(T value, int delta) {
  return __shfl_down_sync(~0u, value, static_cast<unsigned>(delta));
}
template <class T> PUMICE_DEVICE T warp_shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
PUMICE_DEVICE uint32_t warp_ballot(bool is) {
  return __ballot_sync(~0u, is);
}
PUMICE_DEVICE bool warp_any(bool is) {
  return __any_sync(~0u, is) != 0;
}
/// The lanes that gave the same value.
template <class T> PUMICE_DEVICE uint32_t warp_match_any(T value) {
  return __match_any_sync(~0u, value);
}

PUMICE_DEVICE int popcount(uint32_t word) {
  return __popc(word);
}
PUMICE_DEVICE int popcount(uint64_t word) {
  return __popcll(word);
}
/// Position of the lowest set bit of a word that has one.
PUMICE_DEVICE int lowest_bit(uint32_t word) {
  return __ffs(static_cast<int>(word)) - 1;
}
PUMICE_DEVICE int lowest_bit(uint64_t word) {
  return __ffsll(static_cast<long long>(word)) - 1;
}
/// Position of the highest set bit, or -1.
PUMICE_DEVICE int highest_bit(uint64_t word) {
  return 63 - __clzll(static_cast<long long>(word));
}

// Atomics return what was there before.
PUMICE_DEVICE uint32_t atomic_add(uint32_t* at, uint32_t value) {
  return atomicAdd(at, value);
}
PUMICE_DEVICE int32_t atomic_add(int32_t* at, int32_t value) {
  return atomicAdd(at, value);
}
PUMICE_DEVICE uint64_t atomic_add(uint64_t* at, uint64_t value) {
  return atomicAdd(at, value);
}
PUMICE_DEVICE int64_t atomic_add(int64_t* at, int64_t value) {
  return static_cast<int64_t>(
      atomicAdd(reinterpret_cast<uint64_t*>(at), static_cast<uint64_t>(value)));
}
PUMICE_DEVICE float atomic_add(float* at, float value) {
  return atomicAdd(at, value);
}
template <class T> PUMICE_DEVICE T atomic_or(T* at, T value) {
  return atomicOr(at, value);
}
template <class T> PUMICE_DEVICE T atomic_and(T* at, T value) {
  return atomicAnd(at, value);
}
template <class T> PUMICE_DEVICE T atomic_min(T* at, T value) {
  return atomicMin(at, value);
}
template <class T> PUMICE_DEVICE T atomic_max(T* at, T value) {
  return atomicMax(at, value);
}
/// Writes `value` where `expected` stands.
template <class T> PUMICE_DEVICE T atomic_compare_swap(T* at, T expected, T value) {
  return atomicCAS(at, expected, value);
}

/// One word that other blocks write or read while the kernel runs; nothing else is ordered by it.
PUMICE_DEVICE uint32_t load_relaxed(const uint32_t* at) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
PUMICE_DEVICE void store_relaxed(uint32_t* at, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
PUMICE_DEVICE uint64_t load_relaxed(const uint64_t* at) {
  uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
PUMICE_DEVICE void store_relaxed(uint64_t* at, uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
/// What an earlier kernel wrote, read where this one has not waited for the kernel before it: not
/// from the cache of the multiprocessor, which may hold what stood there before.
template <class T> PUMICE_DEVICE T load_ahead(const T* at) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, load_relaxed(reinterpret_cast<const uint32_t*>(at)));
  } else if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(T, load_relaxed(reinterpret_cast<const uint64_t*>(at)));
  } else {
    uint4 words;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(at)
                 : "memory");
    return __builtin_bit_cast(T, words);
  }
}
/// Between two looks at what another block is to write.
PUMICE_DEVICE void pause_polling() {
#if __CUDA_ARCH__ >= 700
  __nanosleep(20);
#endif
}
/// What was written before is seen by other blocks before what is written after.
PUMICE_DEVICE void fence_to_device() {
  __threadfence();
}

/// The same value, which the compiler keeps as it is and does not work out again where it is used.
PUMICE_DEVICE int64_t settled(int64_t value) {
  asm("" : "+l"(value));
  return value;
}

PUMICE_DEVICE float round_down(float value) {
  return floorf(value);
}
PUMICE_DEVICE float quiet_nan() {
  return __int_as_float(0x7fffffff);
}

/// Sixteen bytes at once, between addresses aligned to as many.
PUMICE_DEVICE void copy_16_bytes(void* to, const void* from) {
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
}

/// The shared memory that the launch asked for.
template <class T> PUMICE_DEVICE T* launch_shared() {
  extern __shared__ __align__(1024) unsigned char pumice_launch_shared[];
  return reinterpret_cast<T*>(pumice_launch_shared);
}

}   // namespace pumice
