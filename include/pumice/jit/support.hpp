// What kernels are compiled with at run time and where they are kept, for those who ask.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// A place to look for NVRTC, after PUMICE_NVRTC and before those of the system: for a program that
/// brings its own. Has no effect once the compiler has been looked for.
void suggest_kernel_compiler(std::string path);

struct CompiledKernel {
  std::string source;         // "tile map_f16"
  std::string architecture;   // "sm_90a"
  double milliseconds = 0;
};

/// Calls `listener` after each kernel that this process compiles from here on, on the thread that
/// compiled it, several at once where several threads compile; what it throws goes to whoever
/// wanted the kernel. An empty one ends that. For programs that show progress.
void on_kernel_compiled(std::function<void(const CompiledKernel&)> listener);

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
