// A slab carved front to back.
#include <pumice/core/arena.hpp>

#include <algorithm>
#include <utility>

#include <pumice/core/cuda.hpp>

namespace pumice {

ArenaAllocator::ArenaAllocator(std::int64_t bytes, StreamView stream,
                               std::shared_ptr<Allocator> source)
    : slab_(bytes, stream, std::move(source)) {}

void* ArenaAllocator::allocate(std::size_t bytes, StreamView stream) {
  PUMICE_EXPECTS(stream.device == slab_.device(), "a slab on ", to_string(slab_.device()),
                 " asked for memory on ", to_string(stream.device));
  // A slab of the CPU's is aligned to less, but what is carved from it no worse than it is.
  constexpr auto kStep = static_cast<std::int64_t>(kCudaAlignment);
  const std::int64_t begin = used_;
  const std::int64_t left = slab_.size() - begin;
  PUMICE_EXPECTS(bytes <= static_cast<std::size_t>(left), "a slab of ", slab_.size(),
                 " bytes with ", begin, " in use was asked for ", bytes,
                 " more: make it larger, or bound the capacities");
  const auto size = static_cast<std::int64_t>(bytes);
  used_ = begin + std::min(left, (size + kStep - 1) / kStep * kStep);
  return slab_.data() + begin;
}

void ArenaAllocator::deallocate(void*, std::size_t, StreamView) noexcept {}

}   // namespace pumice
