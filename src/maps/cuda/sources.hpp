// The device code of this stage, as it is compiled.
#pragma once

#include <span>

#include "jit/kernel_table.hpp"

namespace pumice::cuda {

/// Searches for maps; sites that convolutions make.
std::span<const jit::KernelGroup> maps_kernels();

/// "match_maps" and its like.
jit::KernelName maps_kernel(const char* name);

}   // namespace pumice::cuda
