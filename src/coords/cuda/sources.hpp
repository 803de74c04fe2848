// The device code of this stage, as it is compiled: sorting, filling, coordinate sets.
#pragma once

#include <span>

#include "jit/kernel_table.hpp"

namespace pumice::cuda {

/// What is needed for a first set, and apart from it what few programs ask for.
std::span<const jit::KernelGroup> coords_kernels();

/// "sort_scatter_u64" and its like.
jit::KernelName coords_kernel(const char* name);

}   // namespace pumice::cuda
