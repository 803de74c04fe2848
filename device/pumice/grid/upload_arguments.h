// What `write_words` (pumice/grid/upload.h) is launched with.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kUploadThreads = 256;
inline constexpr int kUploadWords = 4096;   // of a launch; arguments are at most 32,764 bytes

struct UploadArguments {
  uint32_t* to = nullptr;
  int64_t words = 0;
  uint32_t word[kUploadWords] = {};
};

}   // namespace pumice
