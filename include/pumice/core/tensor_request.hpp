// What an allocator of a host framework is told of the memory it is asked for.
#pragma once

#include <pumice/core/tensor.hpp>

namespace pumice {

/// The shape and the type of a tensor that is being made.
struct TensorRequest {
  Shape shape;
  DType dtype;
};

/// While an allocator is asked for the memory of a Tensor, by this thread: that tensor, so that the
/// allocator may make one of its own there. Null while a buffer is made.
const TensorRequest* tensor_request();

}   // namespace pumice
