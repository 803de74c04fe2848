// Memory of the framework, as an allocator of Pumice.
#pragma once

#include <memory>
#include <vector>

#include "framework.hpp"

namespace pumice::python {

/// A result that a call will make.
struct Expected {
  nb::handle like;
  Shape shape;
  DType dtype;
};

/// Those of the call that this thread is in.
std::vector<Expected>& expected();

/// On a device: temporary memory and maps from the framework's caching allocator (small blocks are
/// kept, see pumice/core/block_cache.hpp), and tensors of the shape and type of an expected result
/// from a tensor of the framework, which then can be handed out. On the CPU all else comes from
/// Pumice's own.
std::shared_ptr<Allocator> framework_allocator(Device device);

/// Gives the kept blocks of all devices back to the framework.
void release_device_memory();
/// Bytes of them.
std::size_t kept_device_bytes();

struct MadeTensor {
  nb::object tensor;   // null: there is none
  Shape shape{};       // it was made with
  DType dtype = DType::f32;
};
/// The tensor that memory handed out by `framework_allocator` lies in.
MadeTensor tensor_at(Device device, const void* data);

/// like.new_empty(shape, dtype=dtype)
nb::object new_empty(nb::handle like, const Shape& shape, DType dtype);

void close_framework();

}   // namespace pumice::python
