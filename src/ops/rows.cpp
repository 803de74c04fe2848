// Checks the arguments of row moves and reductions and hands them to the back end.
#include <pumice/ops/rows.hpp>

#include <limits>
#include <vector>

#include <pumice/core/copy.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/row_numbers.hpp"
#include "ops/cpu/rows.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/rows_in_use.hpp"

namespace pumice {
namespace {

Shape with_rows(const Shape& shape, std::int64_t rows) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.front() = rows;
  return Shape(extents);
}

/// Kernels count rows and positions in 31 bits.
void check_room(std::int64_t rows, std::int64_t positions, const char* op) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(rows < kMost && positions < kMost, op, ": ", positions, " positions of ", rows,
                 " rows; on a device there are at most 2^31 - 2 of either");
}

ReducedRows reduce_on_device(ConstTensorView features, ConstTensorView row_of,
                             std::int64_t out_rows, Reduction reduction,
                             const ReducedRowsPlaces& places) {
  check_room(out_rows, row_of.rows(), "reduce_rows");
  const StreamView stream = features.stream();
  const Shape shape{out_rows, features.extent(1)};
  jit::DeviceRunner runner = cuda::runner_for(features);
  const cuda::RowGroups groups(runner,
                               cuda::list_of(runner, row_of, out_rows, "reduce_rows: row_of"));
  ReducedRows result;
  result.output = places.output.make(shape, features.dtype(), stream, "places.output");
  switch (reduction) {
    case Reduction::sum:
      cuda::reduce_rows(runner, groups, GroupResult::sum, features, result.output.view());
      break;
    case Reduction::mean:
      cuda::reduce_rows(runner, groups, GroupResult::mean, features, result.output.view());
      break;
    case Reduction::max:
      result.source = places.source.make(shape, DType::i32, stream, "places.source");
      cuda::reduce_rows(runner, groups, GroupResult::max, features, result.output.view(),
                        result.source.view());
      break;
    case Reduction::first:
      result.source = places.source.make({out_rows}, DType::i32, stream, "places.source");
      cuda::first_position(runner, groups, result.source.view());
      cuda::take_rows(runner, features,
                      cuda::list_of(runner, result.source, features.rows(), nullptr),
                      result.output.view());
      break;
  }
  return result;
}

}   // namespace

namespace {

/// Zeros from row `used` on.
void clear_from(TensorView features, std::int64_t used) {
  const std::size_t row =
      static_cast<std::size_t>(features.row_elements()) * size_of(features.dtype());
  const std::size_t begin = static_cast<std::size_t>(used) * row;
  const std::size_t end = static_cast<std::size_t>(features.rows()) * row;
  if (begin < end)
    fill_bytes_async(static_cast<std::byte*>(features.raw()) + begin, std::byte{0}, end - begin,
                     features.stream());
}

}   // namespace

void clear_tail(TensorView features, const RowCount& rows) {
  const RowsInUse used(&rows, features, "clear_tail");
  if (used.host_knows()) return clear_from(features, used.bound());
  jit::DeviceRunner runner = cuda::runner_for(features);
  cuda::clear_tail(runner, used.ref(), features);
}

Tensor cleared_tail(ConstTensorView features, const RowCount& rows, const Place& place) {
  const RowsInUse used(&rows, features, "cleared_tail");
  Tensor output = place.make(features.shape(), features.dtype(), features.stream());
  if (used.host_knows()) {
    copy_async(used.of(output.view()), used.of(features), features.stream());
    clear_from(output.view(), used.bound());
    return output;
  }
  jit::DeviceRunner runner = cuda::runner_for(features);
  cuda::copy_used_rows(runner, used.ref(), features, output.view());
  return output;
}

Tensor take_rows(ConstTensorView features, ConstTensorView rows, const Place& place) {
  PUMICE_EXPECTS(features.rank() >= 1, "take_rows: features is undefined; pass a tensor with rows");
  checks::same_device(rows, features, "take_rows", "rows", "features");
  cpu::check_rows(rows, features.rows(), "take_rows", "rows");
  Tensor output =
      place.make(with_rows(features.shape(), rows.rows()), features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::take_rows(runner, features,
                    cuda::list_of(runner, rows, features.rows(), "take_rows: rows"), output.view());
  } else {
    cpu::take_rows(features, rows, output.view());
  }
  return output;
}

Tensor scatter_rows(ConstTensorView grad_output, ConstTensorView rows, std::int64_t in_rows,
                    const Place& place) {
  PUMICE_EXPECTS(grad_output.rank() >= 1 && is_floating(grad_output.dtype()),
                 "scatter_rows: grad_output is ", name_of(grad_output.dtype()), ' ',
                 to_string(grad_output.shape()), "; pass rows of f64, f32, f16 or bf16");
  PUMICE_EXPECTS(in_rows >= 0, "scatter_rows: in_rows = ", in_rows, "; it cannot be negative");
  checks::same_device(rows, grad_output, "scatter_rows", "rows", "grad_output");
  cpu::check_rows(rows, in_rows, "scatter_rows", "rows");
  checks::extent(grad_output, 0, rows.rows(), "scatter_rows", "grad_output", "the length of rows");
  Tensor grad = place.make(with_rows(grad_output.shape(), in_rows), grad_output.dtype(),
                           grad_output.stream());
  if (checks::on_cuda(grad_output)) {
    check_room(in_rows, rows.rows(), "scatter_rows");
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    const cuda::RowGroups groups(runner,
                                 cuda::list_of(runner, rows, in_rows, "scatter_rows: rows"));
    cuda::reduce_rows(runner, groups, GroupResult::sum, grad_output, grad.view());
  } else {
    cpu::scatter_rows(grad_output, rows, grad.view());
  }
  return grad;
}

ReducedRows reduce_rows(ConstTensorView features, ConstTensorView row_of, std::int64_t out_rows,
                        Reduction reduction, const ReducedRowsPlaces& places) {
  const char* op = "reduce_rows";
  checks::matrix(features, op, "features");
  checks::same_device(row_of, features, op, "row_of", "features");
  PUMICE_EXPECTS(out_rows >= 0, op, ": out_rows = ", out_rows, "; it cannot be negative");
  PUMICE_EXPECTS(features.rows() <= std::numeric_limits<std::int32_t>::max(), op, ": ",
                 features.rows(), " rows; reduce at most 2^31 - 1 at a time");
  cpu::check_rows(row_of, out_rows, op, "row_of");
  checks::extent(features, 0, row_of.rows(), op, "features", "the length of row_of");
  if (checks::on_cuda(features))
    return reduce_on_device(features, row_of, out_rows, reduction, places);
  const Shape shape{out_rows, features.extent(1)};
  const StreamView stream = features.stream();
  ReducedRows result;
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      result.output = places.output.make(shape, features.dtype(), stream, "places.output");
      cpu::reduce_sum(features, row_of, reduction == Reduction::mean, result.output.view());
      break;
    case Reduction::max:
      result = {places.output.make(shape, features.dtype(), stream, "places.output"),
                places.source.make(shape, DType::i32, stream, "places.source")};
      cpu::reduce_max(features, row_of, result.output.view(), result.source.view());
      break;
    case Reduction::first:
      result.source = places.source.make({out_rows}, DType::i32, stream, "places.source");
      cpu::first_position(row_of, result.source.view());
      result.output = take_rows(features, result.source, places.output);
      break;
  }
  return result;
}

Tensor reduce_rows_gradient(ConstTensorView grad_output, ConstTensorView row_of,
                            ConstTensorView source, Reduction reduction, const Place& place) {
  const char* op = "reduce_rows_gradient";
  checks::matrix(grad_output, op, "grad_output");
  checks::same_device(row_of, grad_output, op, "row_of", "grad_output");
  cpu::check_rows(row_of, grad_output.rows(), op, "row_of");
  if (reduction == Reduction::sum) return take_rows(grad_output, row_of, place);
  const bool on_device = checks::on_cuda(grad_output);
  if (on_device) check_room(grad_output.rows(), row_of.rows(), op);
  Tensor grad =
      place.make({row_of.rows(), grad_output.extent(1)}, grad_output.dtype(), grad_output.stream());
  if (reduction == Reduction::mean) {
    if (on_device) {
      jit::DeviceRunner runner = cuda::runner_for(grad_output);
      cuda::mean_gradient(runner, grad_output, row_of, grad.view());
    } else {
      cpu::mean_gradient(grad_output, row_of, grad.view());
    }
    return grad;
  }
  const Shape expected =
      reduction == Reduction::max ? grad_output.shape() : Shape{grad_output.rows()};
  PUMICE_EXPECTS(source.dtype() == DType::i32 && source.shape() == expected, op, ": source is ",
                 name_of(source.dtype()), ' ', to_string(source.shape()), "; pass the i32 ",
                 to_string(expected), " that reduce_rows returned");
  checks::same_device(source, grad_output, op, "source", "grad_output");
  if (on_device) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::chosen_gradient(runner, grad_output, row_of, source, grad.view());
  } else {
    cpu::chosen_gradient(grad_output, row_of, source, grad.view());
  }
  return grad;
}

}   // namespace pumice
