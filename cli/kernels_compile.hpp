// Compiling kernels, for `pumice kernels build` and `check`.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "jit/compile.hpp"
#include "kernels_selection.hpp"

namespace pumice::cli {

struct CompileTask {
  cuda::NamedArchitecture architecture;
  cuda::PlannedKernel kernel;
};

struct Compiled {
  jit::CompileResult result;
  double milliseconds = 0;   // of a processor: neighbours on the machine do not count
  std::string failure;       // what the compiler said; empty when it compiled
};

/// Compiles what is asked for on as many threads as there are.
class Compilation {
 public:
  /// Architectures that this NVRTC does not know are left out, unless they were asked for by name:
  /// then it says so when it compiles. `tables` as in selection.
  Compilation(const KernelArguments& arguments, bool tables);

  const std::vector<cuda::NamedArchitecture>& architectures() const { return architectures_; }
  const std::vector<CompileTask>& tasks() const { return tasks_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

  using Take = std::function<void(const CompileTask&, Compiled, std::vector<std::byte> packed)>;
  /// Hands each on with its part of a bundle, one at a time.
  void run(const Take& take) const;
  double seconds() const;   // since it was made

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<cuda::NamedArchitecture> architectures_;
  std::vector<CompileTask> tasks_;
  std::vector<std::string> left_out_;
};

/// "NVRTC 13.0"
std::string compiler_text();
/// A line that names the architectures that were left out, or nothing.
std::string left_out_text(const Compilation& compilation);

}   // namespace pumice::cli
