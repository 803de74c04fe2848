// Checks the arguments of elementwise operators and hands them to the back end.
#include <pumice/ops/elementwise.hpp>

#include <array>

#include <pumice/core/copy.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/elementwise.hpp"
#include "ops/cpu/row_numbers.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

void check_floating(ConstTensorView tensor, const char* op, const char* name) {
  PUMICE_EXPECTS(is_floating(tensor.dtype()), op, ": ", name, " holds ", name_of(tensor.dtype()),
                 "; convert it to f64, f32, f16 or bf16");
}

Combination on_device(cpu::Binary operation) {
  switch (operation) {
    case cpu::Binary::add: return Combination::add;
    case cpu::Binary::subtract: return Combination::subtract;
    case cpu::Binary::multiply: break;
  }
  return Combination::multiply;
}

Tensor combine(ConstTensorView left, ConstTensorView right, cpu::Binary operation, const char* op,
               const Place& place) {
  check_floating(left, op, "left");
  checks::same_shape(right, left, op, "right", "left");
  checks::same_device(right, left, op, "right", "left");
  Tensor output = place.make(left.shape(), left.dtype(), left.stream());
  if (checks::on_cuda(left)) {
    cuda::combine(left, right, on_device(operation), output.view());
  } else {
    cpu::combine(left, right, operation, output.view());
  }
  return output;
}

std::int64_t rows_of(const UnionSet& sites) {
  return sites.set->rows().capacity();
}

/// The row list of one side of a union must stay in the union.
void check_list(ConstTensorView rows, const UnionSet& sites, const char* op, const char* name) {
  PUMICE_EXPECTS(rows.dtype() == DType::i32, op, ": the rows of the ", name, " side are ",
                 name_of(rows.dtype()), "; pass the i32 list that unite returned");
  cpu::check_rows(rows, rows_of(sites), op, name);
}

void check_side(ConstTensorView features, ConstTensorView rows, const UnionSet& sites,
                const char* op, const char* name) {
  checks::matrix(features, op, name);
  checks::same_device(rows, features, op, "the list of its rows", name);
  check_list(rows, sites, op, name);
  checks::extent(features, 0, rows.rows(), op, name, "the rows of its coordinate set");
}

void check_union_gradient(ConstTensorView grad_output, const UnionSet& sites, const char* op) {
  checks::matrix(grad_output, op, "grad_output");
  checks::same_device(sites.left_row, grad_output, op, "the list of left rows", "grad_output");
  checks::same_device(sites.right_row, grad_output, op, "the list of right rows", "grad_output");
  checks::extent(grad_output, 0, rows_of(sites), op, "grad_output", "the rows of the union");
  check_list(sites.left_row, sites, op, "left");
  check_list(sites.right_row, sites, op, "right");
}

void check_sides(ConstTensorView left, ConstTensorView right, const UnionSet& sites,
                 const char* op) {
  check_side(left, sites.left_row, sites, op, "left");
  check_side(right, sites.right_row, sites, op, "right");
  checks::same_dtype(right, left.dtype(), op, "right", "left");
  checks::same_device(right, left, op, "right", "left");
}

std::int64_t row_bytes(ConstTensorView rows) {
  return rows.extent(1) * static_cast<std::int64_t>(size_of(rows.dtype()));
}

/// The rows of one side where they are in the union, in columns from `byte` on; 0 elsewhere.
void spread_side(ConstTensorView features, ConstTensorView rows, TensorView output,
                 std::int64_t byte) {
  jit::DeviceRunner runner = cuda::runner_for(features);
  const Buffer<std::int32_t> inverse = cuda::invert_rows(
      runner, cuda::list_of(runner, rows, output.rows(), "union: rows of a side"));
  const ConstTensorView list(inverse.data(), DType::i32, {output.rows()}, features.stream());
  cuda::take_rows(runner, {features.raw(), row_bytes(features), row_bytes(features)},
                  cuda::list_of(runner, list, features.rows(), nullptr),
                  static_cast<std::byte*>(output.raw()) + byte, row_bytes(output));
}

/// The gradient of one side: columns of the rows it has in the union.
Tensor take_side(ConstTensorView grad_output, ConstTensorView rows, std::int64_t first_channel,
                 std::int64_t channels, const Place& place, const char* name) {
  Tensor result =
      place.make({rows.rows(), channels}, grad_output.dtype(), grad_output.stream(), name);
  const auto element = static_cast<std::int64_t>(size_of(grad_output.dtype()));
  if (!checks::on_cuda(grad_output)) {
    cpu::take_columns(grad_output, rows, first_channel, result.view());
    return result;
  }
  jit::DeviceRunner runner = cuda::runner_for(grad_output);
  cuda::take_rows(runner,
                  {static_cast<const std::byte*>(grad_output.raw()) + first_channel * element,
                   row_bytes(grad_output), channels * element},
                  cuda::list_of(runner, rows, grad_output.rows(), "union: rows of a side"),
                  result.raw(), channels * element);
  return result;
}

}   // namespace

Tensor add(ConstTensorView left, ConstTensorView right, const Place& place) {
  return combine(left, right, cpu::Binary::add, "add", place);
}
Tensor subtract(ConstTensorView left, ConstTensorView right, const Place& place) {
  return combine(left, right, cpu::Binary::subtract, "subtract", place);
}
Tensor multiply(ConstTensorView left, ConstTensorView right, const Place& place) {
  return combine(left, right, cpu::Binary::multiply, "multiply", place);
}

Tensor scale(ConstTensorView features, double factor, const Place& place) {
  check_floating(features, "scale", "features");
  Tensor output = place.make(features.shape(), features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    cuda::convert(features, factor, output.view());
  } else {
    cpu::scale(features, factor, output.view());
  }
  return output;
}

Tensor convert(const Tensor& features, DType dtype, const Place& place) {
  if (features.dtype() == dtype) return place.put(features);
  Tensor output = place.make(features.shape(), dtype, features.stream());
  if (checks::on_cuda(features)) {
    cuda::convert(features, 1.0, output.view());
  } else {
    convert_on_host(output.view(), features);
  }
  return output;
}

void add_in_place(TensorView total, ConstTensorView term) {
  check_floating(total, "add_in_place", "total");
  checks::same_shape(term, total, "add_in_place", "term", "total");
  checks::same_device(term, total, "add_in_place", "term", "total");
  if (checks::on_cuda(total)) return cuda::combine(total, term, Combination::add, total);
  cpu::add_in_place(total, term);
}

Tensor concatenate(std::span<const ConstTensorView> parts, const Place& place) {
  PUMICE_EXPECTS(!parts.empty(), "concatenate: no parts; pass at least one");
  const ConstTensorView& first = parts.front();
  const std::size_t element = size_of(first.dtype());
  std::int64_t channels = 0;
  std::vector<cpu::ColumnPart> columns;
  std::vector<cuda::Columns> device_columns;
  for (const ConstTensorView& part : parts) {
    checks::matrix(part, "concatenate", "a part");
    checks::same_device(part, first, "concatenate", "a part", "the first");
    checks::extent(part, 0, first.rows(), "concatenate", "a part", "the rows of the first part");
    checks::same_dtype(part, first.dtype(), "concatenate", "a part", "the first");
    columns.push_back({.narrow_const = static_cast<const std::byte*>(part.raw()),
                       .bytes = static_cast<std::size_t>(part.extent(1)) * element,
                       .offset = static_cast<std::size_t>(channels) * element});
    device_columns.push_back({.narrow_const = part, .offset = channels});
    channels += part.extent(1);
  }
  Tensor output = place.make({first.rows(), channels}, first.dtype(), first.stream());
  if (checks::on_cuda(first)) {
    cuda::join_columns(device_columns, output.view());
    return output;
  }
  cpu::join_columns(columns, first.rows(), static_cast<std::size_t>(channels) * element,
                    static_cast<std::byte*>(output.raw()));
  return output;
}

Tensor concatenate(ConstTensorView left, ConstTensorView right, const Place& place) {
  const std::array<ConstTensorView, 2> parts{left, right};
  return concatenate(parts, place);
}

std::vector<Tensor> split(ConstTensorView features, std::span<const std::int64_t> channels,
                          std::span<const Place> places) {
  checks::matrix(features, "split", "features");
  PUMICE_EXPECTS(places.empty() || places.size() == channels.size(), "split: ", places.size(),
                 " places for ", channels.size(), " parts; give one for each, or none");
  const std::size_t element = size_of(features.dtype());
  std::int64_t total = 0;
  std::vector<Tensor> parts;
  std::vector<cpu::ColumnPart> columns;
  std::vector<cuda::Columns> device_columns;
  for (const std::int64_t width : channels) {
    PUMICE_EXPECTS(width >= 0, "split: a part of ", width, " channels; it cannot be negative");
    const Place place = places.empty() ? Place() : places[parts.size()];
    Tensor& part = parts.emplace_back(
        place.make({features.rows(), width}, features.dtype(), features.stream(), "a place"));
    device_columns.push_back({.narrow = part.view(), .offset = total});
    columns.push_back({.narrow = static_cast<std::byte*>(part.raw()),
                       .bytes = static_cast<std::size_t>(width) * element,
                       .offset = static_cast<std::size_t>(total) * element});
    total += width;
  }
  PUMICE_EXPECTS(total == features.extent(1), "split: parts of ", total,
                 " channels in all, but features has shape ", to_string(features.shape()),
                 "; they must add up to its columns");
  if (checks::on_cuda(features)) {
    cuda::cut_columns(device_columns, features);
    return parts;
  }
  cpu::cut_columns(columns, features.rows(), static_cast<std::size_t>(total) * element,
                   static_cast<const std::byte*>(features.raw()));
  return parts;
}

Tensor add(ConstTensorView left, ConstTensorView right, const UnionSet& sites, const Place& place) {
  check_sides(left, right, sites, "add");
  checks::extent(right, 1, left.extent(1), "add", "right", "the channels of left");
  Tensor output = place.make({rows_of(sites), left.extent(1)}, left.dtype(), left.stream());
  if (checks::on_cuda(left)) {
    Tensor other(output.shape(), output.dtype(), output.stream());
    spread_side(left, sites.left_row, output.view(), 0);
    spread_side(right, sites.right_row, other.view(), 0);
    cuda::combine(output, other, Combination::add, output.view());
  } else {
    cpu::union_add(left, sites.left_row, right, sites.right_row, output.view());
  }
  return output;
}

Tensor concatenate(ConstTensorView left, ConstTensorView right, const UnionSet& sites,
                   const Place& place) {
  check_sides(left, right, sites, "concatenate");
  Tensor output =
      place.make({rows_of(sites), left.extent(1) + right.extent(1)}, left.dtype(), left.stream());
  if (checks::on_cuda(left)) {
    spread_side(left, sites.left_row, output.view(), 0);
    spread_side(right, sites.right_row, output.view(), row_bytes(left));
  } else {
    cpu::union_concatenate(left, sites.left_row, right, sites.right_row, output.view());
  }
  return output;
}

UnionGradients union_add_gradient(ConstTensorView grad_output, const UnionSet& sites,
                                  const UnionGradientPlaces& places) {
  check_union_gradient(grad_output, sites, "union_add_gradient");
  const std::int64_t channels = grad_output.extent(1);
  return {take_side(grad_output, sites.left_row, 0, channels, places.left, "places.left"),
          take_side(grad_output, sites.right_row, 0, channels, places.right, "places.right")};
}

UnionGradients union_concatenate_gradient(ConstTensorView grad_output, std::int64_t left_channels,
                                          const UnionSet& sites,
                                          const UnionGradientPlaces& places) {
  const char* op = "union_concatenate_gradient";
  check_union_gradient(grad_output, sites, op);
  PUMICE_EXPECTS(left_channels >= 0 && left_channels <= grad_output.extent(1), op,
                 ": left_channels = ", left_channels, "; grad_output has ", grad_output.extent(1),
                 " columns in all");
  return {take_side(grad_output, sites.left_row, 0, left_channels, places.left, "places.left"),
          take_side(grad_output, sites.right_row, left_channels,
                    grad_output.extent(1) - left_channels, places.right, "places.right")};
}

}   // namespace pumice
