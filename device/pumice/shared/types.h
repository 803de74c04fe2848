// Fixed-width integers for the host compiler and for NVRTC, which has no standard headers.
#pragma once

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#define PUMICE_SHARED __host__ __device__ __forceinline__
#elif defined(__CUDACC__)
#include <stdint.h>
#define PUMICE_SHARED __host__ __device__ __forceinline__
#else
#include <cstdint>
#define PUMICE_SHARED inline
#endif
