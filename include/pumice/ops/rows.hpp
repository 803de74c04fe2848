// Moving whole rows: pruning, permuting, repeating, and merging rows that fell together.
//
// A row number out of range is a UserError on the CPU. On a device, where nobody waits to see the
// numbers, no memory is touched by it: a row taken from there is NaN (bytes of ones), as is a
// gradient, a row that was to be merged into it is left out, and the next call that waits for the
// stream raises the error.
#pragma once

#include <cstdint>

#include <pumice/core/results.hpp>
#include <pumice/core/row_count.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice {

/// result[i] = features[rows[i]]; rows: i32 or i64 [M], repeats allowed, -1 gives a row of zeros
/// (a point outside the range has no voxel). Any trailing shape and any dtype.
Tensor take_rows(ConstTensorView features, ConstTensorView rows, const Place& place = {});
/// Its gradient: [in_rows, …], row r the sum of grad_output[i] over all i with rows[i] == r, in
/// ascending i, summed in float (double for f64, and on a device).
Tensor scatter_rows(ConstTensorView grad_output, ConstTensorView rows, std::int64_t in_rows,
                    const Place& place = {});

/// Rows of `features` [capacity of rows, …] at and past the count become zeros, in place, before an
/// operator that goes over all rows there is room for. One launch where only the device knows the
/// count, nothing where all rows are in use; rows that follow from too many stay NaN.
void clear_tail(TensorView features, const RowCount& rows);
/// The same in memory of its own: a copy of the rows in use with zeros behind them, for what leaves
/// a graph of changing counts, or a gradient that enters one. The others are not read. Its gradient
/// is `cleared_tail` of the gradient. Any type and trailing shape.
Tensor cleared_tail(ConstTensorView features, const RowCount& rows, const Place& place = {});

struct ReducedRows {
  Tensor output;   // [out_rows, C]; 0 for a row that nothing fell into
  Tensor source;   // max: i32 [out_rows, C], first: i32 [out_rows], the input row, -1 for none;
                   // undefined for the others
};
struct ReducedRowsPlaces {
  Place output{};
  Place source{};
};

/// Merges features [P, C] by row_of (i32 or i64 [P], -1 leaves a row out) into out_rows rows. first
/// is the one of smallest index; max is per channel, the smallest index among equals, a NaN before
/// any number; sums run in double in ascending order, rounded once.
ReducedRows reduce_rows(ConstTensorView features, ConstTensorView row_of, std::int64_t out_rows,
                        Reduction reduction, const ReducedRowsPlaces& places = {});
/// [P, C] from grad_output [out_rows, C]; `source` as `reduce_rows` returned it.
Tensor reduce_rows_gradient(ConstTensorView grad_output, ConstTensorView row_of,
                            ConstTensorView source, Reduction reduction, const Place& place = {});

}   // namespace pumice
