// What the kernels that move, add and choose whole rows are launched with.
#pragma once

#include <pumice/ops/row_list_arguments.h>
#include <pumice/shared/coordinate_set_ref.h>
#include <pumice/shared/row_count.h>
#include <pumice/shared/status.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kRowThreads = 256;

/// to[i] = from[rows[i]], as bytes; zeros for -1, bytes of ones for mistakes.
struct TakeArguments {
  RowList rows{};
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_pitch = 0;   // bytes of a row
  int64_t to_pitch = 0;
  int64_t width = 0;         // bytes copied of each row
  int32_t copy_bytes = 16;   // that all addresses, pitches and the width are a multiple of
};

/// Rows at and past the count become zeros, those before it a copy of `from` where there is one. A
/// count that is poison leaves rows as they are, or copies all.
struct ClearTailArguments {
  RowCountRef rows{};
  const void* from = nullptr;
  void* data = nullptr;
  int64_t pitch = 0;         // bytes of a row, all of them
  int32_t copy_bytes = 16;   // that the pitch is a multiple of
};

/// inverse[rows[i]] = i, of distinct rows; the others are left as they are.
struct InvertArguments {
  RowList rows{};
  int32_t* inverse = nullptr;   // [limit]
};

/// Keys of a sort by row; what has none goes behind all rows.
struct RowKeyArguments {
  RowList rows{};
  uint32_t* keys = nullptr;   // [size]
};

/// begin[r]: how many sorted keys are below r, for r up to `groups`.
struct GroupBoundArguments {
  const uint32_t* keys = nullptr;   // [size], ascending
  int32_t* begin = nullptr;         // [groups + 1]
  int64_t size = 0;
  int64_t groups = 0;
};

/// Positions of a list, grouped by the row they name and ascending within it.
struct RowGroupsRef {
  const int32_t* begin = nullptr;       // [groups + 1]
  const uint32_t* position = nullptr;   // [size]
  int64_t groups = 0;
};

enum class GroupResult : int32_t { sum, mean, max };

/// out[r] from in[position / per] over the positions of group r, in ascending order.
struct GroupArguments {
  RowGroupsRef groups{};
  const void* in = nullptr;        // [size / per, channels]
  void* out = nullptr;             // [groups, channels]
  const void* weights = nullptr;   // [size] of a sum; null: 1
  int32_t* source = nullptr;       // max: [groups, channels] the position, -1 for none
  int32_t per = 1;
  int32_t channels = 0;
  ElementType type = ElementType::f32;
  GroupResult result = GroupResult::sum;
  bool wide_weights = false;   // fp64 instead of fp32
};

/// source[r]: the first position of group r, or -1.
struct FirstArguments {
  RowGroupsRef groups{};
  int32_t* source = nullptr;
};

/// Gradients of what was reduced: out[p] from grad[rows[p]].
struct ReducedGradientArguments {
  RowList rows{};
  const int32_t* begin = nullptr;    // mean: bounds of groups, whose sizes divide
  const int32_t* source = nullptr;   // max, first: the positions that were chosen
  const void* grad = nullptr;        // [limit, channels]
  void* out = nullptr;               // [size, channels]
  int32_t channels = 0;
  ElementType type = ElementType::f32;
  bool by_channel = false;   // source is [limit, channels] instead of [limit]
};

/// Where the element of a cell and channel 0 is in a dense array.
struct DensePlacement {
  int64_t batch_stride = 0;   // elements
  int64_t channel_stride = 0;
  int64_t stride[kMaxDimension] = {};
  int32_t low[kMaxDimension] = {};
  int32_t shape[kMaxDimension] = {};
  int32_t dimension = 3;
};

/// Rows to cells of a dense array, or back. As bits: elements of `element_bytes`.
struct DenseArguments {
  RowCountRef rows{};
  DensePlacement placement{};
  const int32_t* coordinates = nullptr;   // [rows, 1 + dimension]
  const void* from = nullptr;             // features [rows, channels], or the dense array
  void* to = nullptr;                     // the other
  int64_t* outside = nullptr;             // counts rows outside the grid; null: they are left out
  int32_t channels = 0;
  int32_t element_bytes = 4;
  bool to_features = false;   // where a row is outside: 0
};

/// Says so where rows lie outside.
struct OutsideArguments {
  const int64_t* outside = nullptr;
  int64_t rows = 0;
  StatusRecord* status = nullptr;
  int32_t site = 0;
};

/// The cells around points.
struct CornerArguments {
  CoordinateSetRef set{};
  const void* points = nullptr;   // [points, 1 + dimension] fp32, or fp64
  int32_t* rows = nullptr;        // [points, corners]
  void* weights = nullptr;        // [points, corners] of the type of the points
  int64_t* bad = nullptr;         // counts points that are no numbers or in no batch item
  int64_t size = 0;
  int32_t batch_size = 1;
  int32_t corners = 8;   // 2^dimension, or 1: the nearest cell
  bool wide = false;
  bool renormalize = false;
};

/// out[p] = Σ weight · in[row] over the corners of a point.
struct InterpolateArguments {
  RowList rows{};   // [points, corners] of `in`
  const void* weights = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  int64_t points = 0;
  int32_t corners = 8;
  int32_t channels = 0;
  ElementType type = ElementType::f32;
  bool wide_weights = false;
};

}   // namespace pumice
