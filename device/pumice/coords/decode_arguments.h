// What the kernels of pumice/coords/decode.h are launched with.
#pragma once

#include <pumice/shared/key_layout.h>
#include <pumice/shared/row_count.h>

namespace pumice {

inline constexpr int kDecodeThreads = 256;

struct DecodeArguments {
  RowCountRef rows{};
  KeyLayout layout{};
  const uint64_t* keys = nullptr;   // by rank
  const int32_t* order = nullptr;   // rank -> row; null when they are equal
  int32_t* coordinates = nullptr;   // [rows, 1 + dimension]
};

struct BatchArguments {
  RowCountRef rows{};
  KeyLayout layout{};
  const uint64_t* keys = nullptr;
  int64_t* begin = nullptr;   // [batch_size + 1]
  int64_t batch_size = 0;
};

}   // namespace pumice
