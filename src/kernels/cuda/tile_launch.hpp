// From a specification to a launch.
#pragma once

#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/core/dtype.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// How kernels name what is stored as `type`: f32, f16 or bf16. InternalError for others.
ElementType storage_element(DType type);

/// The source of `spec`; stays as long as the process lives.
const jit::Source& source_of(const TileSpec& spec);

/// Enqueues the kernel of `spec` over all tiles that there is room for.
void launch_tiles(jit::KernelRunner& runner, const TileSpec& spec, const TileArguments& arguments);

}   // namespace pumice::cuda
