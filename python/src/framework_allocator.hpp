// Memory of the framework, as an allocator of Pumice.
#pragma once

#include <cstddef>
#include <memory>

#include "framework.hpp"

namespace pumice::python {

/// Of a device: temporary memory and maps from the framework's caching allocator; small blocks are
/// kept, see pumice/core/block_cache.hpp, and larger ones of passes without gradients.
std::shared_ptr<Allocator> framework_allocator(Device device);

/// As long as it lives, what this thread takes belongs to a pass that records no gradients: blocks
/// of up to 64 MiB are kept when they are given back, a 64th of a device's memory at most. Such a
/// pass takes the same blocks again and again, and the host is what it waits for.
class InferenceMemory {
 public:
  /// `applies`: else it changes nothing.
  explicit InferenceMemory(bool applies);
  ~InferenceMemory();
  InferenceMemory(const InferenceMemory&) = delete;
  InferenceMemory& operator=(const InferenceMemory&) = delete;

 private:
  bool applies_;
};
/// Gives those of `device` back, before a pass with gradients, which needs room for other things.
void release_inference_memory(Device device);

/// Whether it is PyTorch's OutOfMemoryError, which says that a device has no memory left, or
/// Python's MemoryError.
bool is_out_of_memory(const nb::python_error& error);

/// Gives the kept blocks of all devices back to the framework.
void release_device_memory();
/// Bytes of them.
std::size_t kept_device_bytes();

/// like.new_empty(shape, dtype=dtype)
nb::object new_empty(nb::handle like, const Shape& shape, DType dtype);

/// At the end of the process: nothing is given back from then on.
void close_framework();
bool framework_is_closed();

}   // namespace pumice::python
