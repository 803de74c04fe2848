// Memory of the framework, as an allocator of Pumice.
#pragma once

#include <cstddef>
#include <memory>

#include "framework.hpp"

namespace pumice::python {

/// Of a device: temporary memory and maps from the framework's caching allocator; small blocks are
/// kept, see pumice/core/block_cache.hpp.
std::shared_ptr<Allocator> framework_allocator(Device device);

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
