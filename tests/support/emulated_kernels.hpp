// Kernels of the library as functions that the emulator runs, by their names.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace pumice::test {

struct EmulatedKernel {
  std::size_t argument_bytes = 0;
  std::function<void(const void* arguments)> thread;   // what one thread does
};

/// Null for a name that is not among them.
const EmulatedKernel* find_emulated_kernel(std::string_view name);

}   // namespace pumice::test
