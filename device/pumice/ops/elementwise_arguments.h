// What the kernels that go over features element by element (elementwise.h, columns.h) are launched
// with.
#pragma once

#include <pumice/shared/activation.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kElementThreads = 256;
/// Elements of a thread: 8 or 16 bytes an access.
inline constexpr int kElementsPerThread = 4;
inline constexpr int kElementsPerBlock = kElementThreads * kElementsPerThread;

enum class Combination : int32_t { add, subtract, multiply };

/// out[i] = left[i] op right[i]
struct CombineArguments {
  const void* left = nullptr;
  const void* right = nullptr;
  void* out = nullptr;
  int64_t elements = 0;
  ElementType type = ElementType::f32;
  Combination combination = Combination::add;
};

/// out[i] = in[i] · factor, from one type to another.
struct ConvertArguments {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t elements = 0;
  float factor = 1;
  ElementType in_type = ElementType::f32;
  ElementType out_type = ElementType::f32;
};

/// out[i] = activation(in[i]), or with a gradient gradient[i] · activation'(in[i]).
struct ActivateArguments {
  const void* in = nullptr;
  const void* gradient = nullptr;
  void* out = nullptr;
  int64_t elements = 0;
  float slope = 0;
  ElementType type = ElementType::f32;
  Activation activation = Activation::none;
};

/// out[row, c] = in[row, c] · scale[c] + shift[c]
struct AffineArguments {
  const void* in = nullptr;
  void* out = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  int64_t elements = 0;
  int64_t channels = 0;
  ElementType type = ElementType::f32;
};

/// The norm of a shortcut, whose shift is added where both sums are one.
struct ShortcutNormArguments {
  const void* weight = nullptr;   // null: 1
  const void* bias = nullptr;     // null: 0
  const void* mean = nullptr;     // null: there is none
  const void* variance = nullptr;
  double epsilon = 0;
  ElementType parameter_type = ElementType::f32;   // of weight and bias
  ElementType statistic_type = ElementType::f32;   // of mean and variance
};

/// A batch norm with given statistics as scale and shift of what it normalises, a bias in front of
/// it included: scale = weight / sqrt(variance + epsilon), shift = bias + (before − mean) · scale.
struct FoldArguments {
  const void* weight = nullptr;   // null: 1
  const void* bias = nullptr;     // null: 0
  const void* mean = nullptr;
  const void* variance = nullptr;
  const void* before = nullptr;   // null: 0
  float* scale = nullptr;
  float* shift = nullptr;
  double epsilon = 0;
  int32_t channels = 0;
  ElementType parameter_type = ElementType::f32;   // of weight and bias
  ElementType statistic_type = ElementType::f32;   // of mean and variance
  ElementType before_type = ElementType::f32;
  ShortcutNormArguments shortcut = {};
};

/// Norms of one launch, whose arguments are up to 4 KiB long.
inline constexpr int kMostFoldedNorms = 32;

struct FoldNormsArguments {
  FoldArguments norm[kMostFoldedNorms];
};
static_assert(sizeof(FoldNormsArguments) <= 4096, "more than a launch takes");

inline constexpr int kMaxColumnParts = 8;

/// Columns of one array beside each other in another.
struct ColumnPart {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_pitch = 0;   // bytes of a row
  int64_t to_pitch = 0;
  int64_t width = 0;   // bytes copied of each row
  int64_t first_block = 0;
};

struct ColumnArguments {
  ColumnPart part[kMaxColumnParts] = {};
  int64_t rows = 0;
  int32_t parts = 0;
  int32_t copy_bytes = 16;   // that all addresses, pitches and widths are a multiple of
};

}   // namespace pumice
