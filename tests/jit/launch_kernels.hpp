// The kernels that the tests of launching run, their arguments, and what they do on the host.
#pragma once

#include <cstdint>

#include <pumice/shared/status.h>

#include "jit/compile.hpp"

namespace pumice::test {

struct SaxpyArguments {
  float a = 0;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t size = 0;
};

/// Says that `needed` rows did not fit where `capacity` had room.
struct OverflowArguments {
  StatusRecord* status = nullptr;
  std::int64_t needed = 0;
  std::int64_t capacity = 0;
  std::int32_t site = 0;
};

/// Doubles each value through dynamic shared memory, a block for `threads` of them.
struct DoubleArguments {
  float* values = nullptr;
  std::int64_t size = 0;
};

inline jit::Source launch_source() {
  return {.name = "launch_test.cu", .text = R"(
#include <pumice/platform.h>
#include <pumice/shared/status.h>
using namespace pumice;
struct SaxpyArguments { float a; const float* x; float* y; int64_t size; };
struct OverflowArguments { StatusRecord* status; int64_t needed; int64_t capacity; int32_t site; };
struct DoubleArguments { float* values; int64_t size; };

extern "C" __global__ void saxpy(const __grid_constant__ SaxpyArguments args) {
  wait_for_previous();
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < args.size) args.y[i] += args.a * args.x[i];
}

extern "C" __global__ void report_overflow(const __grid_constant__ OverflowArguments args) {
  wait_for_previous();
  StatusRecord* record = args.status;
  if (atomicCAS(&record->claim, 0, 1) != 0) return;
  record->site = args.site;
  record->needed = args.needed;
  record->capacity = args.capacity;
  __threadfence_system();
  *static_cast<volatile int32_t*>(&record->code) = kOverCapacity;
}

extern "C" __global__ void double_values(const __grid_constant__ DoubleArguments args) {
  wait_for_previous();
  extern __shared__ float staged[];
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < args.size ? args.values[i] : 0;
  __syncthreads();
  if (i < args.size) args.values[i] = 2 * staged[threadIdx.x];
}
)"};
}

}   // namespace pumice::test
