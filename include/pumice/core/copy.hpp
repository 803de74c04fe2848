// Copies and fills, between host and devices, in the order of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/device.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice {

/// Enqueues a copy of `bytes` on `stream`, which is of one of the two devices unless both are the
/// CPU. Ordinary host memory may be changed again after the call; `to` on the host is complete
/// after the next wait. In a captured graph the copy reads and writes where it was told at each
/// launch; UserError there for a copy from or to host memory, which may be gone by then.
void copy_async(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                StreamView stream);
/// Between tensors of one shape and type.
void copy_async(TensorView to, const ConstTensorView& from, StreamView stream);

/// Between tensors of one shape on the host, of floating types: rounded to nearest.
void convert_on_host(TensorView to, ConstTensorView from);

/// Enqueues filling `bytes` with one byte.
void fill_bytes_async(void* data, std::byte value, std::size_t bytes, StreamView stream);
/// Enqueues filling a tensor with one value, rounded to its type.
void fill_async(TensorView tensor, double value, StreamView stream);

/// A copy of `tensor` on the device of `stream`, enqueued there; complete at once on the CPU.
Tensor copy_to(StreamView stream, const ConstTensorView& tensor);

/// A copy on the host. Waits for `stream`, on whose device `tensor` lies, and raises what went
/// wrong there.
Tensor copy_to_host(const ConstTensorView& tensor, StreamView stream);
/// The first `size` elements of a buffer, likewise.
template <class T> std::vector<T> copy_to_host(const T* data, std::int64_t size, StreamView stream);
template <class T> std::vector<T> copy_to_host(const Buffer<T>& buffer, StreamView stream) {
  return copy_to_host(buffer.data(), buffer.size(), stream);
}

namespace detail {
void copy_to_host(void* to, const void* from, std::size_t bytes, StreamView stream);
}   // namespace detail

template <class T>
std::vector<T> copy_to_host(const T* data, std::int64_t size, StreamView stream) {
  std::vector<T> values(static_cast<std::size_t>(size));
  detail::copy_to_host(values.data(), data, values.size() * sizeof(T), stream);
  return values;
}

}   // namespace pumice
