// Moves, sums and choices of whole rows on CUDA. Shapes and types are checked by the caller. Row
// numbers are looked at by the kernels, for nobody waits to see them: one out of range is reported,
// and what is made of it is NaN.
#pragma once

#include <pumice/ops/row_arguments.h>
#include <pumice/core/tensor.hpp>
#include <pumice/ops/interpolation.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Columns of an array that are gathered: of each row `width` bytes from `first` on.
struct RowColumns {
  const void* from = nullptr;
  std::int64_t pitch = 0;   // bytes of a row
  std::int64_t width = 0;
};

/// i32 or i64 `rows` of `limit`, reported under `name` ("take_rows: rows") where they are none;
/// null: never, for a list that kernels made.
RowList list_of(jit::KernelRunner& runner, const ConstTensorView& rows, std::int64_t limit,
                const char* name);

/// to[i] = from[rows[i]], zeros for -1. Rows of `to` are `to_pitch` bytes apart. One launch.
void take_rows(jit::KernelRunner& runner, const RowColumns& from, const RowList& rows, void* to,
               std::int64_t to_pitch);
/// The same of whole rows.
void take_rows(jit::KernelRunner& runner, ConstTensorView features, const RowList& rows,
               TensorView output);

/// Rows of `features` at and past the count become zeros. A launch; none where the count is exact.
void clear_tail(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features);
/// output = features with zeros at and past the count, which are not read. One launch.
void copy_used_rows(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features,
                    TensorView output);

/// For distinct rows: which position names row r, or -1. A fill and a launch.
Buffer<std::int32_t> invert_rows(jit::KernelRunner& runner, const RowList& rows);

/// The positions of a list, sorted by the rows that it names.
class RowGroups {
 public:
  /// Two launches and those of a sort: 2 to 4 passes.
  RowGroups(jit::KernelRunner& runner, const RowList& rows);
  RowGroupsRef ref() const { return {begin_.data(), position_.data(), begin_.size() - 1}; }

 private:
  Buffer<std::int32_t> begin_;
  Buffer<std::uint32_t> position_;
};

/// Sums, means or the largest of the rows of each group; `source`: i32, of the largest alone.
void reduce_rows(jit::KernelRunner& runner, const RowGroups& groups, GroupResult result,
                 ConstTensorView features, TensorView output, TensorView source = {});
void first_position(jit::KernelRunner& runner, const RowGroups& groups, TensorView source);
/// Σ over the corners that name row r: weight · grad_output[point].
void interpolate_gradient(jit::KernelRunner& runner, ConstTensorView grad_output,
                          const InterpolationMapView& map, TensorView grad_features);

void mean_gradient(jit::KernelRunner& runner, ConstTensorView grad_output, ConstTensorView row_of,
                   TensorView grad_features);
/// `source`: [rows, channels] or [rows].
void chosen_gradient(jit::KernelRunner& runner, ConstTensorView grad_output, ConstTensorView row_of,
                     ConstTensorView source, TensorView grad_features);

/// `map` has room for what is found. Points that are no numbers get NaN, and are reported.
void find_corners(jit::KernelRunner& runner, const CoordinateSetRef& set, std::int32_t batch_size,
                  ConstTensorView points, bool renormalize, TensorView rows, TensorView weights);
void interpolate(jit::KernelRunner& runner, ConstTensorView features,
                 const InterpolationMapView& map, TensorView output);

/// Rows to the cells of a dense array, which is full of zeros. Rows outside are reported as `op`
/// unless `crop`.
void place_rows(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView coordinates,
                const DensePlacement& placement, bool crop, const char* op,
                ConstTensorView features, TensorView dense);
/// And back; 0 for rows outside.
void pick_rows(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView coordinates,
               const DensePlacement& placement, bool crop, const char* op, ConstTensorView dense,
               TensorView features);

}   // namespace pumice::cuda
