// The device code of this stage, as it is compiled.
#pragma once

#include <pumice/shared/tile_spec.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// "combine_elements" and its like.
jit::KernelName features_kernel(const char* name);

/// How kernels name a type of features; UserError, naming `argument`, for those that are for the
/// CPU alone.
ElementType element_type(DType type, const char* op, const char* argument);

/// A runner on the stream that `tensor` is ordered by.
jit::DeviceRunner runner_for(const ConstTensorView& tensor);

/// UserError where `tensor` is on another device than `first`, which is named too.
void check_same_device(const ConstTensorView& tensor, const ConstTensorView& first, const char* op,
                       const char* argument, const char* first_argument);

}   // namespace pumice::cuda
