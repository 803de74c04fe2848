// The device code of this stage, as it is compiled.
#pragma once

#include <span>

#include "jit/kernel_table.hpp"

namespace pumice::cuda {

/// Tile maps; tiles of pairs; pair lists, which training asks for.
std::span<const jit::KernelGroup> formats_kernels();

/// "cut_tiles" and its like.
jit::KernelName formats_kernel(const char* name);

}   // namespace pumice::cuda
