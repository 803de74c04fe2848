// Hands ranges to the blocks of a launch.
#include "coords/cuda/fill_list.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

ZeroedRoom::ZeroedRoom(std::int64_t bytes, StreamView stream, std::shared_ptr<Allocator> source)
    : arena(std::make_shared<ArenaAllocator>(bytes, stream, std::move(source))) {
  const auto size = static_cast<std::size_t>(bytes);
  words = {static_cast<std::uint32_t*>(arena->allocate(size, stream)),
           size / sizeof(std::uint32_t)};
  arena->rewind();
}

std::shared_ptr<ArenaAllocator> FillList::room_for(std::int64_t bytes) const {
  const bool fits = zeroed_ != nullptr && bytes <= zeroed_->capacity() - zeroed_->used();
  return fits ? zeroed_ : nullptr;
}

void FillList::add(void* data, std::int64_t words, std::uint32_t word) {
  if (words > 0) ranges_.push_back({static_cast<std::uint32_t*>(data), words, word, 0});
}

void FillList::run(jit::KernelRunner& runner) {
  std::span<const FillRange> left(ranges_);
  while (!left.empty()) {
    const auto now = left.first(std::min<std::size_t>(left.size(), kMaxFillRanges));
    left = left.subspan(now.size());
    FillRanges arguments;
    std::int32_t blocks = 0;
    for (const FillRange& range : now) {
      FillRange& mine = arguments.range[arguments.count++];
      mine = range;
      mine.first_block = blocks;
      blocks += static_cast<std::int32_t>((range.words + kFillWords - 1) / kFillWords);
    }
    runner.run(coords_kernel("fill_ranges"), {.blocks = blocks, .threads = kFillThreads},
               arguments);
  }
  ranges_.clear();
}

}   // namespace pumice::cuda
