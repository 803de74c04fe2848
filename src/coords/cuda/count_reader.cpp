// One launch brings the words side by side, one copy takes them.
#include "coords/cuda/count_reader.hpp"

#include <algorithm>
#include <span>

#include <pumice/grid/gather_arguments.h>
#include <pumice/core/copy.hpp>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

std::vector<std::int64_t> CountReader::wait(jit::KernelRunner& runner) {
  if (words_.empty()) return {};
  const auto count = static_cast<std::int64_t>(words_.size());
  auto together = runner.make<std::int64_t>(count);
  std::int64_t* to = together.data();
  for (std::span<const std::int64_t* const> left = words_; !left.empty();) {
    const auto now = left.first(std::min<std::size_t>(left.size(), kMostGathered));
    GatherArguments arguments{.to = to, .count = static_cast<std::int32_t>(now.size())};
    std::ranges::copy(now, arguments.from);
    runner.run(coords_kernel("gather_words"), {.blocks = 1, .threads = kGatherThreads}, arguments);
    to += now.size();
    left = left.subspan(now.size());
  }
  return copy_to_host(together, runner.stream());
}

}   // namespace pumice::cuda
