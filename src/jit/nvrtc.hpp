// NVRTC, the compiler that makes kernels at run time, opened when first asked for. Its prototypes
// are declared here, so that building needs no CUDA header.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pumice::jit {

using NvrtcProgram = struct OpaqueNvrtcProgram*;
using NvrtcResult = int;

// X(name of the exported function, its parameters); every one returns an NvrtcResult.
#define PUMICE_NVRTC_FUNCTIONS(X)                                                             \
  X(nvrtcVersion, (int* major, int* minor))                                                   \
  X(nvrtcGetNumSupportedArchs, (int*))                                                        \
  X(nvrtcGetSupportedArchs, (int*))                                                           \
  X(nvrtcCreateProgram, (NvrtcProgram*, const char* text, const char* name, int header_count, \
                         const char* const* headers, const char* const* header_names))        \
  X(nvrtcDestroyProgram, (NvrtcProgram*))                                                     \
  X(nvrtcCompileProgram, (NvrtcProgram, int option_count, const char* const* options))        \
  X(nvrtcGetCUBINSize, (NvrtcProgram, std::size_t*))                                          \
  X(nvrtcGetCUBIN, (NvrtcProgram, char*))                                                     \
  X(nvrtcGetProgramLogSize, (NvrtcProgram, std::size_t*))                                     \
  X(nvrtcGetProgramLog, (NvrtcProgram, char*))

struct Nvrtc {
#define PUMICE_DECLARE(name, parameters) NvrtcResult(*name) parameters = nullptr;
  PUMICE_NVRTC_FUNCTIONS(PUMICE_DECLARE)
#undef PUMICE_DECLARE
  const char* (*nvrtcGetErrorString)(NvrtcResult) = nullptr;
};

/// What opening NVRTC came to.
struct NvrtcState {
  Nvrtc functions;
  std::string path;     // of the library as it was loaded; empty when it was not
  std::string reason;   // why nothing can be compiled; empty when it can
  int major = 0;
  int minor = 0;
  std::vector<int> architectures;   // 80 for sm_80, ascending
};

/// Opens the first of `candidates` that is there. Never throws: the state says what is wrong.
NvrtcState open_nvrtc(const std::vector<std::string>& candidates) noexcept;

/// Where NVRTC is looked for, in this order: what the environment variable PUMICE_NVRTC names, and
/// then nothing else; what was suggested; the loader's own places, where one that the process has
/// loaded already is found too; CUDA_HOME or CUDA_PATH; /usr/local/cuda and the newest
/// /usr/local/cuda-*. NVRTC 13 goes before 12, but not where the driver serves CUDA 12 and would
/// not load what 13 makes.
std::vector<std::string> nvrtc_candidates();
/// Adds a candidate: <pumice/jit/support.hpp>, suggest_kernel_compiler.
void suggest_nvrtc(std::string path);

/// The process's NVRTC, opened by the first call.
const NvrtcState& nvrtc_state() noexcept;
/// Its functions; UserError with the reason where there is none.
const Nvrtc& nvrtc();

}   // namespace pumice::jit
