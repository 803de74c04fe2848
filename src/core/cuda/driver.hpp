// The CUDA driver, opened when first asked for. Nothing links against it, so Pumice starts wherever
// there is none.
#pragma once

#include <string>
#include <vector>

#include "core/cuda/driver_api.hpp"

namespace pumice::cuda {

/// The driver's functions under their own names.
struct Driver {
#define PUMICE_DECLARE(name, parameters) Result(*name) parameters = nullptr;
  PUMICE_CUDA_DRIVER_FUNCTIONS(PUMICE_DECLARE)
  PUMICE_CUDA_DRIVER_EXTRAS(PUMICE_DECLARE)
#undef PUMICE_DECLARE
};

/// What opening the driver came to.
struct DriverState {
  Driver functions;
  std::string path;     // as it was opened; empty when it could not be
  std::string reason;   // why CUDA cannot be used; empty when it can
  int version = 0;      // 13000 for CUDA 13.0; 0 when unknown
  int devices = 0;
};

/// 12.0 brought cuLibraryLoadData and kernels without a context, 12.1 arguments beyond 4 KiB.
inline constexpr int kOldestVersion = 12010;

/// Opens the first of `candidates` that is there and starts CUDA. Never throws: the state says what
/// is wrong.
DriverState open_driver(const std::vector<std::string>& candidates,
                        const std::string& visible_devices) noexcept;

/// The process's driver, opened by the first call: what the environment variable PUMICE_CUDA_DRIVER
/// names, else libcuda.so.1 where the loader finds it, else where containers and WSL keep it.
const DriverState& driver_state() noexcept;

/// Its functions; UserError with the reason where CUDA cannot be used.
const Driver& driver();

/// "12.4" of 12040.
std::string version_text(int version);

/// "CUDA_ERROR_INVALID_VALUE: invalid argument"
std::string error_text(Result result);

/// Throws Error with `what`, the name and the text of an error. Some errors leave the process
/// without CUDA for good; the message then says so.
[[noreturn]] void raise(Result result, const std::string& what);
inline void check(Result result, const char* what) {
  if (result != kSuccess) raise(result, what);
}

}   // namespace pumice::cuda

/// PUMICE_CUDA(cuStreamSynchronize(stream)): calls the driver and checks the result.
#define PUMICE_CUDA(call) ::pumice::cuda::check(::pumice::cuda::driver().call, #call)
