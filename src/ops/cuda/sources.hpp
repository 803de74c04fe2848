// The device code of this stage, as it is compiled.
#pragma once

#include <span>

#include <pumice/shared/tile_spec.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"
#include "jit/kernel_table.hpp"

namespace pumice::cuda {

/// All kernels of this stage that are not written for one specification.
std::span<const jit::KernelGroup> ops_kernels();
/// "combine_elements" and its like.
jit::KernelName ops_kernel(const char* name);

/// How kernels name a type of features; UserError, naming `argument`, for those that are for the
/// CPU alone.
ElementType element_type(DType type, const char* op, const char* argument);

/// The widest access, of up to 16 bytes, that `bytes` is a multiple of.
std::int32_t widest_access(std::int64_t bytes);

/// A runner on the stream that `tensor` is ordered by.
jit::DeviceRunner runner_for(const ConstTensorView& tensor);

}   // namespace pumice::cuda
