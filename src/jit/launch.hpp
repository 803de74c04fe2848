// Enqueues a kernel with one struct of arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <pumice/core/device.hpp>

#include "jit/kernel.hpp"

namespace pumice::jit {

struct LaunchShape {
  std::int64_t blocks = 1;   // none: nothing is enqueued
  int blocks_y = 1;
  int blocks_z = 1;
  int threads = 256;
  int shared_bytes = 0;   // dynamic
};

/// Of a kernel's parameters since CUDA 12.1, on sm_70 and later; 4 KiB before.
inline constexpr std::size_t kMostArgumentBytes = 32764;

namespace detail {
void launch_bytes(const Kernel& kernel, const LaunchShape& shape, StreamView stream,
                  const void* arguments, std::size_t bytes);
}   // namespace detail

/// Enqueues `kernel` on `stream`. InternalError where shape or argument do not fit it. With
/// PUMICE_SYNC=1 waits, and raises what went wrong under the kernel's name.
template <class Arguments>
void launch(const Kernel& kernel, const LaunchShape& shape, StreamView stream,
            const Arguments& arguments) {
  static_assert(std::is_trivially_copyable_v<Arguments>, "arguments travel as bytes");
  static_assert(sizeof(Arguments) <= kMostArgumentBytes, "more than a kernel takes");
  detail::launch_bytes(kernel, shape, stream, &arguments, sizeof(Arguments));
}

}   // namespace pumice::jit
