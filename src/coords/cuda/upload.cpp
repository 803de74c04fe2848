// A copy, or launches that carry the words.
#include "coords/cuda/upload.hpp"

#include <algorithm>
#include <cstddef>

#include <pumice/grid/upload_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

void upload(jit::KernelRunner& runner, std::uint32_t* to, std::span<const std::uint32_t> words) {
  const StreamView stream = runner.stream();
  if (!is_capturing(stream)) {
    copy_async(to, stream.device, words.data(), Device{}, words.size_bytes(), stream);
    return;
  }
  while (!words.empty()) {
    const auto now = words.first(std::min<std::size_t>(words.size(), kUploadWords));
    UploadArguments arguments{.to = to, .words = static_cast<std::int64_t>(now.size())};
    std::copy(now.begin(), now.end(), arguments.word);
    runner.run(coords_kernel("write_words"),
               {.blocks = (arguments.words + kUploadThreads - 1) / kUploadThreads,
                .threads = kUploadThreads},
               arguments);
    to += now.size();
    words = words.subspan(now.size());
  }
}

}   // namespace pumice::cuda
