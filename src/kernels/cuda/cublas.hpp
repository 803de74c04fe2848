// cuBLAS, NVIDIA's library of dense products, opened when first asked for. Its prototypes are
// declared here, so that building needs no CUDA header.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pumice::cuda {

using CublasHandle = struct OpaqueCublasContext*;
using CublasStatus = int;

// X(name of the exported function, its parameters); every one returns a CublasStatus.
#define PUMICE_CUBLAS_FUNCTIONS(X)                                                           \
  X(cublasGetProperty, (int which, int* value))                                              \
  X(cublasCreate_v2, (CublasHandle*))                                                        \
  X(cublasSetStream_v2, (CublasHandle, void* stream))                                        \
  X(cublasSetWorkspace_v2, (CublasHandle, void* memory, std::size_t bytes))                  \
  X(cublasGemmStridedBatchedEx,                                                              \
    (CublasHandle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, \
     const void* a, int a_type, int a_pitch, long long a_stride, const void* b, int b_type,  \
     int b_pitch, long long b_stride, const void* beta, void* c, int c_type, int c_pitch,    \
     long long c_stride, int batches, int compute_type, int algorithm))

struct Cublas {
#define PUMICE_DECLARE(name, parameters) CublasStatus(*name) parameters = nullptr;
  PUMICE_CUBLAS_FUNCTIONS(PUMICE_DECLARE)
#undef PUMICE_DECLARE
  const char* (*cublasGetStatusString)(CublasStatus) = nullptr;
};

/// What opening cuBLAS came to.
struct CublasState {
  Cublas functions;
  std::string path;     // of the library as it was loaded; empty when it was not
  std::string reason;   // why there is none; empty when there is
  int major = 0;
};

/// Opens the first of `candidates` that is there. Never throws: the state says what is wrong.
CublasState open_cublas(const std::vector<std::string>& candidates) noexcept;

/// Where cuBLAS is looked for, in this order: what the environment variable PUMICE_CUBLAS names,
/// and then nothing else; the loader's own places, where one that the process has loaded already is
/// found too; installed toolkits; beside NVRTC where that comes from a Python package; the Python
/// packages of VIRTUAL_ENV, CONDA_PREFIX, the user and the system, as PyTorch installs it. cuBLAS
/// 13 goes before 12, but not where the driver serves CUDA 12.
std::vector<std::string> cublas_candidates();

/// The process's cuBLAS, opened by the first call.
const CublasState& cublas_state() noexcept;

}   // namespace pumice::cuda
