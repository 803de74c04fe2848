// Copies and fills: memcpy on the CPU, the driver's on a device.
#include <pumice/core/copy.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/context.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kGrain = std::int64_t{1} << 19;   // bytes: 50 µs or so

bool is_cuda(Device device) {
  return device.kind == DeviceKind::cuda;
}

void check_alike(const ConstTensorView& to, const ConstTensorView& from) {
  PUMICE_EXPECTS(to.shape() == from.shape() && to.dtype() == from.dtype(), "copy of ",
                 to_string(from.shape()), ' ', name_of(from.dtype()), " to ", to_string(to.shape()),
                 ' ', name_of(to.dtype()), ": shape and type are to be the same");
}

std::size_t bytes_of(const ConstTensorView& tensor) {
  return static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype());
}

/// The driver fills with 1, 2 or 4 bytes; 8 are two strided fills unless both halves are equal.
void fill_on_device(void* data, std::uint64_t pattern, std::size_t size, std::size_t count,
                    StreamView stream) {
  const cuda::ContextGuard guard(stream.device);
  const cuda::DeviceAddress address = cuda::address_of(data);
  const cuda::StreamHandle handle = cuda::handle_of(stream);
  const auto low = static_cast<std::uint32_t>(pattern);
  const auto high = static_cast<std::uint32_t>(pattern >> 32);
  switch (size) {
    case 1:
      PUMICE_CUDA(cuMemsetD8Async(address, static_cast<unsigned char>(low), count, handle));
      break;
    case 2:
      PUMICE_CUDA(cuMemsetD16Async(address, static_cast<unsigned short>(low), count, handle));
      break;
    case 4: PUMICE_CUDA(cuMemsetD32Async(address, low, count, handle)); break;
    default:
      if (low == high) {
        PUMICE_CUDA(cuMemsetD32Async(address, low, 2 * count, handle));
        break;
      }
      PUMICE_CUDA(cuMemsetD2D32Async(address, 8, low, 1, count, handle));
      PUMICE_CUDA(cuMemsetD2D32Async(address + 4, 8, high, 1, count, handle));
  }
}

template <class T> void fill(TensorView tensor, double value, StreamView stream) {
  const T element = [&] {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(value);
    else
      return narrow<T>(static_cast<compute_t<T>>(value));
  }();
  const auto count = static_cast<std::size_t>(tensor.elements());
  if (!is_cuda(tensor.device())) {
    std::fill_n(tensor.data<T>(), count, element);
    return;
  }
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, &element, sizeof(T));
  fill_on_device(tensor.raw(), pattern, sizeof(T), count, stream);
}

}   // namespace

void copy_async(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                StreamView stream) {
  if (bytes == 0) return;
  if (!is_cuda(to_device) && !is_cuda(from_device)) {
    std::memcpy(to, from, bytes);
    return;
  }
  PUMICE_EXPECTS(
      is_cuda(stream.device) && (stream.device == to_device || stream.device == from_device),
      "copy from ", to_string(from_device), " to ", to_string(to_device), " on a stream of ",
      to_string(stream.device), ": the stream is to be of the CUDA device");
  const bool between_devices = is_cuda(to_device) && is_cuda(from_device);
  PUMICE_EXPECTS(between_devices || !is_capturing(stream), "a copy ",
                 is_cuda(to_device) ? "from" : "to", " host memory is recorded into a graph on ",
                 to_string(stream.device),
                 ", which would go to that memory at every launch, whether it is still there or "
                 "not: copy before the recording begins, or after the launch");
  const cuda::ContextGuard guard(stream.device);
  const cuda::StreamHandle handle = cuda::handle_of(stream);
  const cuda::DeviceAddress target = cuda::address_of(to);
  const cuda::DeviceAddress source = cuda::address_of(from);
  if (!is_cuda(from_device)) {
    PUMICE_CUDA(cuMemcpyHtoDAsync_v2(target, from, bytes, handle));
  } else if (!is_cuda(to_device)) {
    PUMICE_CUDA(cuMemcpyDtoHAsync_v2(to, source, bytes, handle));
  } else if (to_device == from_device) {
    PUMICE_CUDA(cuMemcpyDtoDAsync_v2(target, source, bytes, handle));
  } else {
    PUMICE_CUDA(cuMemcpyPeerAsync(target, cuda::context_of(to_device).handle, source,
                                  cuda::context_of(from_device).handle, bytes, handle));
  }
}

void copy_async(TensorView to, const ConstTensorView& from, StreamView stream) {
  check_alike(to, from);
  copy_async(to.raw(), to.device(), from.raw(), from.device(), bytes_of(from), stream);
}

void fill_bytes_async(void* data, std::byte value, std::size_t bytes, StreamView stream) {
  if (bytes == 0) return;
  if (is_cuda(stream.device)) {
    fill_on_device(data, static_cast<std::uint64_t>(value), 1, bytes, stream);
    return;
  }
  parallel_for(static_cast<std::int64_t>(bytes), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memset(static_cast<std::byte*>(data) + begin, static_cast<int>(value),
                static_cast<std::size_t>(end - begin));
  });
}

void fill_async(TensorView tensor, double value, StreamView stream) {
  PUMICE_EXPECTS(tensor.device() == stream.device, "fill of a tensor on ",
                 to_string(tensor.device()), " on a stream of ", to_string(stream.device));
  if (tensor.elements() == 0) return;
  if (value == 0 && !std::signbit(value)) {   // zero is zero bytes in every type
    fill_bytes_async(tensor.raw(), std::byte{0}, bytes_of(tensor), stream);
    return;
  }
  switch (tensor.dtype()) {
    case DType::f64: fill<double>(tensor, value, stream); break;
    case DType::f32: fill<float>(tensor, value, stream); break;
    case DType::f16: fill<Half>(tensor, value, stream); break;
    case DType::bf16: fill<BFloat16>(tensor, value, stream); break;
    case DType::i64: fill<std::int64_t>(tensor, value, stream); break;
    case DType::i32: fill<std::int32_t>(tensor, value, stream); break;
    case DType::i16: fill<std::int16_t>(tensor, value, stream); break;
    case DType::u8: fill<std::uint8_t>(tensor, value, stream); break;
  }
}

Tensor copy_to(StreamView stream, const ConstTensorView& tensor) {
  if (!tensor.defined()) return {};
  PUMICE_EXPECTS(is_cuda(stream.device) || !is_cuda(tensor.device()), "a tensor on ",
                 to_string(tensor.device()),
                 " comes to the host with copy_to_host, which waits for its stream");
  Tensor result(tensor.shape(), tensor.dtype(), stream);
  copy_async(result.view(), tensor, stream);
  return result;
}

Tensor copy_to_host(const ConstTensorView& tensor, StreamView stream) {
  if (!tensor.defined()) return {};
  check_can_wait(stream);
  Tensor result(tensor.shape(), tensor.dtype());
  copy_async(result.view(), tensor, stream);
  wait(stream);
  return result;
}

namespace detail {
void copy_to_host(void* to, const void* from, std::size_t bytes, StreamView stream) {
  check_can_wait(stream);
  copy_async(to, Device{}, from, stream.device, bytes, stream);
  wait(stream);
}
}   // namespace detail

}   // namespace pumice
