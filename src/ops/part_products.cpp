// Checks products over parts and hands them to their skeletons.
#include <pumice/ops/part_products.hpp>

#include <pumice/core/error.hpp>
#include <pumice/kernels/part_products.hpp>

#include "ops/cuda/part_products.hpp"
#include "ops/pattern_checks.hpp"

namespace pumice {
namespace {

/// The size of the pattern, and where it lies.
CsrView size_of_pattern(const Decomposed& parts, const char* op) {
  PUMICE_EXPECTS(static_cast<std::int64_t>(parts.row_begin().size()) == parts.rows() + 1, op,
                 ": this Decomposed is empty: give what formats:: functions return");
  return {.rows = parts.rows(),
          .columns = parts.columns(),
          .row_begin = parts.row_begin(),
          .device = parts.device()};
}

}   // namespace

SpmmResult spmm(const Decomposed& parts, ConstTensorView values, ConstTensorView features,
                EntryReduction reduction, const SpmmPlaces& places) {
  const char* const op = "spmm";
  const CsrView size = size_of_pattern(parts, op);
  checks::rows_of(features, size, size.columns, op, "features", "columns");
  const ConstTensorView weights = checks::entry_values(values, size, parts.entries(), features, op);
  const Shape shape{size.rows, features.extent(1)};
  SpmmResult result;
  result.output = places.output.make(shape, features.dtype(), features.stream(), "places.output");
  if (checks::picks(reduction))
    result.source = places.source.make(shape, DType::i64, features.stream(), "places.source");
  const PartReduceArguments arguments{
      .parts = parts,
      .values = weights,
      .features = features,
      .output = result.output.view(),
      .source = result.source.defined() ? result.source.view() : TensorView{}};
  checks::is_on_device(size) ? cuda::spmm(arguments, reduction)
                             : gather_reduce(arguments, reduction);
  return result;
}

Tensor sddmm(const Decomposed& parts, ConstTensorView left, ConstTensorView right,
             std::int64_t heads, const Place& place) {
  const char* const op = "sddmm";
  const CsrView size = size_of_pattern(parts, op);
  checks::rows_of(left, size, size.rows, op, "left", "rows");
  checks::rows_of(right, size, size.columns, op, "right", "columns");
  checks::same_dtype(right, left.dtype(), op, "right", "left");
  checks::extent(right, 1, left.extent(1), op, "right", "as left has");
  checks::head_count(heads, left.extent(1), op);
  Tensor result = place.make({parts.entries(), heads}, left.dtype(), left.stream());
  const PartDotArguments arguments{
      .parts = parts, .left = left, .right = right, .output = result.view()};
  checks::is_on_device(size) ? cuda::sddmm(arguments) : edge_dot(arguments);
  return result;
}

}   // namespace pumice
