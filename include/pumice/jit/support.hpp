// What kernels are compiled with at run time and where they are kept, for those who ask.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pumice {

struct KernelCompiler {
  bool available = false;
  std::string reason;    // why not, in a sentence; empty when available
  std::string version;   // "13.0"
  std::string path;
};

/// NVRTC as this process finds it. Never throws.
const KernelCompiler& kernel_compiler() noexcept;

struct KernelCache {
  std::filesystem::path folder;   // empty: there is no home to keep kernels in
  std::int64_t bytes = 0;
  std::int64_t kernels = 0;
  std::int64_t limit_bytes = 0;
};

/// The folder of compiled kernels as it is now. UserError where PUMICE_CACHE_MB is no number.
KernelCache kernel_cache();

/// A file of kernels compiled ahead that this process looks in.
struct KernelBundle {
  std::filesystem::path path;
  std::string problem;   // why it is ignored; empty when it is used
  std::int64_t bytes = 0;
  std::int64_t kernels = 0;
  std::vector<std::string> architectures;   // "sm_90a"
  std::string compiler;                     // "12.9"; several with commas
};

/// In the order they are looked in: what PUMICE_BUNDLE names, else those of the installation.
std::vector<KernelBundle> kernel_bundles();

}   // namespace pumice
