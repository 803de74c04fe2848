// Every environment variable Pumice reads. Each is read once and empty when unset.
#pragma once

#include <cstdint>
#include <string>

namespace pumice::environment {

/// PUMICE_LOG: topics to log, "plan,map,kernel", or "all".
const std::string& log_topics();

/// PUMICE_SYNC: 1 waits after every launch on a device and checks what came of it. UserError for
/// what is neither 0 nor 1, at every call.
bool waits_after_launch();
/// PUMICE_CUDA_DRIVER: the CUDA driver's library.
const std::string& cuda_driver();
/// PUMICE_NVRTC: the library that compiles kernels.
const std::string& nvrtc();
/// PUMICE_CUBLAS: the library of dense products on a device.
const std::string& cublas();
/// PUMICE_CACHE: the folder of compiled kernels and tuned plans.
const std::string& cache_folder();
/// PUMICE_CACHE_MB: how large that folder may become.
const std::string& cache_mebibytes();
/// PUMICE_PLANS: the file of tuned plans.
const std::string& plans();
/// PUMICE_BUNDLE: a file of kernels compiled ahead, or a folder of such files.
const std::string& bundle();

/// PUMICE_DATA: a folder of recorded scans, for benchmarks.
const std::string& data();

/// PUMICE_KERNEL_ROWS: 1, or how many times the rows there are tiles are picked for, so that a
/// small scan runs the kernels of a large one. UserError for what is no number from 1 to 1,000,000,
/// at every call.
std::int64_t kernel_rows();

/// PUMICE_DEPENDENT_LAUNCH: whether kernels of recorded graphs overlap, "on" or "off"; empty, they
/// do.
const std::string& dependent_launch();

/// CUDA_VISIBLE_DEVICES, for messages: the driver obeys it.
const std::string& cuda_visible_devices();
/// CUDA_HOME, else CUDA_PATH: an installed toolkit.
const std::string& cuda_home();
/// VIRTUAL_ENV and CONDA_PREFIX: a Python whose packages bring CUDA's libraries.
const std::string& virtual_environment();
const std::string& conda_prefix();
/// XDG_CACHE_HOME and HOME, below which caches live.
const std::string& xdg_cache_home();
const std::string& home();

}   // namespace pumice::environment
