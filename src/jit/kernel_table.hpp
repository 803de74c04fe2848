// The kernels of a stage by name, each in the source that holds it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "jit/kernel_runner.hpp"

namespace pumice::jit {

/// What is compiled together.
struct KernelGroup {
  Source source;
  std::vector<const char*> kernels;
};

/// InternalError for a name that no group has.
KernelName find_kernel(std::span<const KernelGroup> groups, std::string_view name);

}   // namespace pumice::jit
