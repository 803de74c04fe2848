// Working memory of a thread, kept from one piece of work to the next.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/core/buffer.hpp>

namespace pumice::cpu {

/// What a piece of work needs memory for at the same time.
enum class ScratchUse : std::size_t { sums, rows, product, matrix, count };

/// At least `size` elements, uninitialised, aligned to a cache line; valid until the same thread
/// asks again for the same use. Do not hold it across a parallel loop: a thread that waits there
/// may take up other work.
template <class T> T* thread_scratch(ScratchUse use, std::int64_t size) {
  thread_local std::array<Buffer<std::byte>, static_cast<std::size_t>(ScratchUse::count)> buffers;
  auto& buffer = buffers[static_cast<std::size_t>(use)];
  const auto bytes = size * static_cast<std::int64_t>(sizeof(T));
  if (buffer.size() < bytes) buffer = Buffer<std::byte>(bytes);
  return reinterpret_cast<T*>(buffer.data());
}

}   // namespace pumice::cpu
