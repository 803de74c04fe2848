// What the kernels of attention over entries (ops/edge_softmax.h) are launched with.
#pragma once

#include <pumice/shared/pattern_ref.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

inline constexpr int kEdgeThreads = 256;
/// Of a long row: one of 154,828 entries is 303 for each.
inline constexpr int kLongEdgeThreads = 512;   // of 1,024 the gradient spills

/// See EdgeScores in ops/edge_softmax.hpp; null: none.
struct EdgeScoresRef {
  const void* target = nullptr;
  const void* source = nullptr;
  const void* entry = nullptr;
  float slope = 1;
};

struct EdgeSoftmaxArguments {
  PatternRef pattern;
  EdgeScoresRef scores{};
  const void* output = nullptr;   // of the gradient: what the softmax was
  const void* grad = nullptr;
  void* result = nullptr;   // [entries, heads], or [rows, heads] of sums
  int32_t heads = 1;
  int32_t team = 32;   // threads of a row and head, a power of 2 up to 32
  ElementType type = ElementType::f32;
};

}   // namespace pumice
