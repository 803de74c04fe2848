// The part of the CUDA driver's interface that Pumice uses, declared here so that building needs no
// CUDA header. Names, numbers and layouts are those of CUDA 12.0, which later drivers keep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pumice::cuda {

using Result = int;
using DeviceId = int;
using DeviceAddress = unsigned long long;
using ContextHandle = struct OpaqueContext*;
using StreamHandle = struct OpaqueStream*;
using EventHandle = struct OpaqueEvent*;
using PoolHandle = struct OpaquePool*;
using GraphHandle = struct OpaqueGraph*;
using GraphNodeHandle = struct OpaqueGraphNode*;
using GraphExecHandle = struct OpaqueGraphExec*;
using LibraryHandle = struct OpaqueLibrary*;
using KernelHandle = struct OpaqueKernel*;
using FunctionHandle = struct OpaqueFunction*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kCaptureUnsupported = 900;

enum DeviceAttribute : int {
  kWarpSize = 10,
  kMultiprocessors = 16,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedBytesPerBlock = 97,   // the most a kernel can ask for
  kMemoryPoolsSupported = 115,
};

enum KernelAttribute : int {
  kMostThreads = 0,   // for a block, by launch bounds and registers
  kStaticSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMostDynamicSharedBytes = 8,
};

enum PoolAttribute : int {
  kReleaseThreshold = 4,
  kReservedNow = 5,
};

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostDeviceMap = 2;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kCaptureNone = 0;

struct MemoryLocation {
  int type = 1;   // a device
  int id = 0;
};

struct PoolProperties {
  int allocation_type = 1;   // pinned: the only kind there is
  int handle_types = 0;
  MemoryLocation location{};
  void* security_attributes = nullptr;
  std::size_t most_bytes = 0;   // 0: as much as there is
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88);

struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  void* attributes = nullptr;   // none are used
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

}   // namespace pumice::cuda

// X(name of the exported function, its parameters); every one returns a Result.
#define PUMICE_CUDA_DRIVER_FUNCTIONS(X)                                                        \
  X(cuGetErrorName, (Result, const char**))                                                    \
  X(cuGetErrorString, (Result, const char**))                                                  \
  X(cuDeviceGetCount, (int*))                                                                  \
  X(cuDeviceGet, (DeviceId*, int index))                                                       \
  X(cuDeviceGetName, (char*, int bytes, DeviceId))                                             \
  X(cuDeviceGetAttribute, (int*, int attribute, DeviceId))                                     \
  X(cuDeviceTotalMem_v2, (std::size_t*, DeviceId))                                             \
  X(cuDevicePrimaryCtxRetain, (ContextHandle*, DeviceId))                                      \
  X(cuCtxGetCurrent, (ContextHandle*))                                                         \
  X(cuCtxPushCurrent_v2, (ContextHandle))                                                      \
  X(cuCtxPopCurrent_v2, (ContextHandle*))                                                      \
  X(cuCtxSynchronize, ())                                                                      \
  X(cuMemGetInfo_v2, (std::size_t * free, std::size_t * total))                                \
  X(cuMemPoolCreate, (PoolHandle*, const PoolProperties*))                                     \
  X(cuMemPoolSetAttribute, (PoolHandle, int attribute, void* value))                           \
  X(cuMemPoolGetAttribute, (PoolHandle, int attribute, void* value))                           \
  X(cuMemPoolTrimTo, (PoolHandle, std::size_t bytes_to_keep))                                  \
  X(cuMemAllocFromPoolAsync, (DeviceAddress*, std::size_t bytes, PoolHandle, StreamHandle))    \
  X(cuMemFreeAsync, (DeviceAddress, StreamHandle))                                             \
  X(cuMemHostAlloc, (void**, std::size_t bytes, unsigned flags))                               \
  X(cuMemHostGetDevicePointer_v2, (DeviceAddress*, void* host, unsigned flags))                \
  X(cuMemcpyHtoDAsync_v2, (DeviceAddress to, const void* from, std::size_t, StreamHandle))     \
  X(cuMemcpyDtoHAsync_v2, (void* to, DeviceAddress from, std::size_t, StreamHandle))           \
  X(cuMemcpyDtoDAsync_v2, (DeviceAddress to, DeviceAddress from, std::size_t, StreamHandle))   \
  X(cuMemcpyPeerAsync, (DeviceAddress to, ContextHandle, DeviceAddress from, ContextHandle,    \
                        std::size_t bytes, StreamHandle))                                      \
  X(cuMemsetD8Async, (DeviceAddress, unsigned char value, std::size_t count, StreamHandle))    \
  X(cuMemsetD16Async, (DeviceAddress, unsigned short value, std::size_t count, StreamHandle))  \
  X(cuMemsetD32Async, (DeviceAddress, unsigned value, std::size_t count, StreamHandle))        \
  X(cuMemsetD2D32Async, (DeviceAddress, std::size_t pitch, unsigned value, std::size_t width,  \
                         std::size_t height, StreamHandle))                                    \
  X(cuStreamCreate, (StreamHandle*, unsigned flags))                                           \
  X(cuStreamDestroy_v2, (StreamHandle))                                                        \
  X(cuStreamSynchronize, (StreamHandle))                                                       \
  X(cuStreamWaitEvent, (StreamHandle, EventHandle, unsigned flags))                            \
  X(cuStreamIsCapturing, (StreamHandle, int* state))                                           \
  X(cuStreamBeginCapture_v2, (StreamHandle, int mode))                                         \
  X(cuStreamEndCapture, (StreamHandle, GraphHandle*))                                          \
  X(cuThreadExchangeStreamCaptureMode, (int* mode))                                            \
  X(cuEventCreate, (EventHandle*, unsigned flags))                                             \
  X(cuEventDestroy_v2, (EventHandle))                                                          \
  X(cuEventRecord, (EventHandle, StreamHandle))                                                \
  X(cuEventSynchronize, (EventHandle))                                                         \
  X(cuEventElapsedTime, (float* milliseconds, EventHandle from, EventHandle to))               \
  X(cuGraphInstantiateWithFlags, (GraphExecHandle*, GraphHandle, unsigned long long flags))    \
  X(cuGraphGetNodes, (GraphHandle, GraphNodeHandle*, std::size_t * count))                     \
  X(cuGraphLaunch, (GraphExecHandle, StreamHandle))                                            \
  X(cuGraphExecDestroy, (GraphExecHandle))                                                     \
  X(cuGraphDestroy, (GraphHandle))                                                             \
  X(cuLibraryLoadData, (LibraryHandle*, const void* code, int* jit_options, void** jit_values, \
                        unsigned jit_count, int* options, void** values, unsigned count))      \
  X(cuLibraryUnload, (LibraryHandle))                                                          \
  X(cuLibraryGetKernel, (KernelHandle*, LibraryHandle, const char* name))                      \
  X(cuKernelGetFunction, (FunctionHandle*, KernelHandle))                                      \
  X(cuKernelGetAttribute, (int*, int attribute, KernelHandle, DeviceId))                       \
  X(cuKernelSetAttribute, (int attribute, int value, KernelHandle, DeviceId))                  \
  X(cuLaunchKernelEx, (const LaunchConfig*, FunctionHandle, void** arguments, void** extra))   \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                               \
    (int*, FunctionHandle, int threads, std::size_t shared_bytes))

// Those that a driver of CUDA 12.0 may lack, or a later one than 13; null there.
#define PUMICE_CUDA_DRIVER_EXTRAS(X)                                                       \
  X(cuKernelGetParamInfo,                                                                  \
    (KernelHandle, std::size_t index, std::size_t * offset, std::size_t * size))           \
  X(cuStreamGetCaptureInfo_v2, (StreamHandle, int* state, std::uint64_t* id, GraphHandle*, \
                                const GraphNodeHandle**, std::size_t*))                    \
  X(cuStreamGetCaptureInfo_v3, (StreamHandle, int* state, std::uint64_t* id, GraphHandle*, \
                                const GraphNodeHandle**, const void** edges, std::size_t*))
