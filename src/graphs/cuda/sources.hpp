// The device code of this stage, as it is compiled.
#pragma once

#include <span>

#include "jit/kernel_table.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> graphs_kernels();
jit::KernelName graphs_kernel(const char* name);

}   // namespace pumice::cuda
