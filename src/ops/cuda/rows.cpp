// Launches of the kernels that work on whole rows.
#include "ops/cuda/rows.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <pumice/core/copy.hpp>

#include "coords/cuda/radix_sort.hpp"
#include "core/cuda/status.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

jit::LaunchShape thread_each(std::int64_t items) {
  return {.blocks = (items + kRowThreads - 1) / kRowThreads, .threads = kRowThreads};
}

/// A thread for every chunk of channels of every row.
jit::LaunchShape chunk_each(std::int64_t rows, std::int64_t channels) {
  return thread_each(rows * (channels % 4 == 0 ? channels / 4 : channels));
}

std::int32_t channels_of(const ConstTensorView& tensor) {
  return static_cast<std::int32_t>(tensor.row_elements());
}

/// A counter of what is wrong with a list, and its report.
class Complaints {
 public:
  explicit Complaints(jit::KernelRunner& runner)
      : runner_(runner), count_(runner.make<std::int64_t>(1)) {
    fill_bytes_async(count_.data(), std::byte{0}, count_.bytes(), runner.stream());
  }
  std::int64_t* count() { return count_.data(); }
  void report(const char* op, std::int64_t rows) {
    runner_.run(ops_kernel("report_outside"), {.threads = 32},
                OutsideArguments{.outside = count_.data(),
                                 .rows = rows,
                                 .status = runner_.status(),
                                 .site = status_site(op)});
  }

 private:
  jit::KernelRunner& runner_;
  Buffer<std::int64_t> count_;
};

void move_dense(jit::KernelRunner& runner, const char* op, bool crop, DenseArguments arguments) {
  if (arguments.channels == 0 || arguments.rows.capacity == 0) return;
  std::optional<Complaints> complaints;
  if (!crop) arguments.outside = complaints.emplace(runner).count();
  runner.run(ops_kernel("move_dense_rows"),
             thread_each(arguments.rows.capacity * arguments.channels), arguments);
  if (complaints) complaints->report(op, arguments.rows.capacity);
}

}   // namespace

RowList list_of(jit::KernelRunner& runner, const ConstTensorView& rows, std::int64_t limit,
                const char* name) {
  return {.row = rows.raw(),
          .size = rows.elements(),
          .limit = limit,
          .status = name == nullptr ? nullptr : runner.status(),
          .site = name == nullptr ? 0 : status_site(name),
          .wide = rows.dtype() == DType::i64};
}

void take_rows(jit::KernelRunner& runner, const RowColumns& from, const RowList& rows, void* to,
               std::int64_t to_pitch) {
  if (from.width == 0) return;
  const std::int64_t together = from.pitch | from.width | to_pitch |
                                reinterpret_cast<std::intptr_t>(from.from) |
                                reinterpret_cast<std::intptr_t>(to);
  const std::int32_t copy_bytes = widest_access(together);
  runner.run(ops_kernel("take_rows"), thread_each(rows.size * (from.width / copy_bytes)),
             TakeArguments{.rows = rows,
                           .from = from.from,
                           .to = to,
                           .from_pitch = from.pitch,
                           .to_pitch = to_pitch,
                           .width = from.width,
                           .copy_bytes = copy_bytes});
}

void take_rows(jit::KernelRunner& runner, ConstTensorView features, const RowList& rows,
               TensorView output) {
  const std::int64_t bytes =
      features.row_elements() * static_cast<std::int64_t>(size_of(features.dtype()));
  take_rows(runner, {features.raw(), bytes, bytes}, rows, output.raw(), bytes);
}

namespace {

/// `most_blocks`: what walks on where there is more.
void clear_tail(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features,
                void* data, std::int64_t most_blocks) {
  const std::int64_t pitch =
      features.row_elements() * static_cast<std::int64_t>(size_of(features.dtype()));
  if (pitch == 0) return;
  PUMICE_ENSURES(rows.capacity == features.rows(), "a count within ", rows.capacity, " for ",
                 features.rows(), " rows");
  const std::int32_t copy_bytes = widest_access(pitch);
  jit::LaunchShape shape = thread_each(rows.capacity * (pitch / copy_bytes));
  shape.blocks = std::min(shape.blocks, most_blocks);
  runner.run(ops_kernel("clear_tail"), shape,
             ClearTailArguments{.rows = rows,
                                .from = data == features.raw() ? nullptr : features.raw(),
                                .data = data,
                                .pitch = pitch,
                                .copy_bytes = copy_bytes});
}

}   // namespace

void clear_tail(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features) {
  constexpr std::int64_t kMostBlocks = 512;   // most often there is little to clear
  if (rows.count != nullptr)
    clear_tail(runner, rows, features, const_cast<void*>(features.raw()), kMostBlocks);
}

void copy_used_rows(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features,
                    TensorView output) {
  constexpr std::int64_t kMostBlocks = 1 << 14;
  clear_tail(runner, rows, features, output.raw(), kMostBlocks);
}

Buffer<std::int32_t> invert_rows(jit::KernelRunner& runner, const RowList& rows) {
  auto inverse = runner.make<std::int32_t>(rows.limit);
  fill_bytes_async(inverse.data(), std::byte{0xff}, inverse.bytes(), runner.stream());
  runner.run(ops_kernel("invert_rows"), thread_each(rows.size),
             InvertArguments{.rows = rows, .inverse = inverse.data()});
  return inverse;
}

RowGroups::RowGroups(jit::KernelRunner& runner, const RowList& rows)
    : begin_(runner.make<std::int32_t>(rows.limit + 1)) {
  const std::int64_t size = rows.size;
  const std::int64_t groups = rows.limit;
  FillList fill;
  RadixSort<std::uint32_t> sort(
      runner, {size, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(groups)))}, fill);
  fill.run(runner);
  runner.run(ops_kernel("key_rows"), thread_each(size),
             RowKeyArguments{.rows = rows, .keys = sort.keys()});
  sort.run(runner, {nullptr, size});
  runner.run(
      ops_kernel("bound_groups"), thread_each(groups + 1),
      GroupBoundArguments{
          .keys = sort.sorted_keys(), .begin = begin_.data(), .size = size, .groups = groups});
  position_ = sort.take_sorted_values();
}

void reduce_rows(jit::KernelRunner& runner, const RowGroups& groups, GroupResult result,
                 ConstTensorView features, TensorView output, TensorView source) {
  const std::int32_t channels = channels_of(features);
  if (channels == 0) return;
  runner.run(ops_kernel("reduce_groups"), chunk_each(output.rows(), channels),
             GroupArguments{.groups = groups.ref(),
                            .in = features.raw(),
                            .out = output.raw(),
                            .source = source.defined() ? source.data<std::int32_t>() : nullptr,
                            .channels = channels,
                            .type = element_type(features.dtype(), "reduction of rows", "features"),
                            .result = result});
}

void first_position(jit::KernelRunner& runner, const RowGroups& groups, TensorView source) {
  runner.run(ops_kernel("first_of_groups"), thread_each(source.elements()),
             FirstArguments{.groups = groups.ref(), .source = source.data<std::int32_t>()});
}

void interpolate_gradient(jit::KernelRunner& runner, ConstTensorView grad_output,
                          const InterpolationMapView& map, TensorView grad_features) {
  const std::int32_t channels = channels_of(grad_output);
  if (channels == 0) return;
  const RowGroups groups(runner,
                         list_of(runner, map.rows, map.in_rows, "interpolate_gradient: rows"));
  runner.run(ops_kernel("reduce_groups"), chunk_each(map.in_rows, channels),
             GroupArguments{
                 .groups = groups.ref(),
                 .in = grad_output.raw(),
                 .out = grad_features.raw(),
                 .weights = map.weights.raw(),
                 .per = static_cast<std::int32_t>(map.rows.extent(1)),
                 .channels = channels,
                 .type = element_type(grad_output.dtype(), "interpolate_gradient", "grad_output"),
                 .wide_weights = map.weights.dtype() == DType::f64});
}

void mean_gradient(jit::KernelRunner& runner, ConstTensorView grad_output, ConstTensorView row_of,
                   TensorView grad_features) {
  const std::int32_t channels = channels_of(grad_output);
  if (channels == 0) return;
  const RowList rows = list_of(runner, row_of, grad_output.rows(), "reduce_rows_gradient: row_of");
  const RowGroups groups(runner, rows);
  runner.run(ops_kernel("reduced_gradient"), chunk_each(row_of.elements(), channels),
             ReducedGradientArguments{
                 .rows = rows,
                 .begin = groups.ref().begin,
                 .grad = grad_output.raw(),
                 .out = grad_features.raw(),
                 .channels = channels,
                 .type = element_type(grad_output.dtype(), "reduce_rows_gradient", "grad_output")});
}

void chosen_gradient(jit::KernelRunner& runner, ConstTensorView grad_output, ConstTensorView row_of,
                     ConstTensorView source, TensorView grad_features) {
  const std::int32_t channels = channels_of(grad_output);
  if (channels == 0) return;
  runner.run(
      ops_kernel("reduced_gradient"), chunk_each(row_of.elements(), channels),
      ReducedGradientArguments{
          .rows = list_of(runner, row_of, grad_output.rows(), "reduce_rows_gradient: row_of"),
          .source = source.data<std::int32_t>(),
          .grad = grad_output.raw(),
          .out = grad_features.raw(),
          .channels = channels,
          .type = element_type(grad_output.dtype(), "reduce_rows_gradient", "grad_output"),
          .by_channel = source.rank() == 2});
}

void find_corners(jit::KernelRunner& runner, const CoordinateSetRef& set, std::int32_t batch_size,
                  ConstTensorView points, bool renormalize, TensorView rows, TensorView weights) {
  if (points.rows() == 0) return;
  Complaints complaints(runner);
  runner.run(ops_kernel("find_corners"), thread_each(points.rows()),
             CornerArguments{.set = set,
                             .points = points.raw(),
                             .rows = rows.data<std::int32_t>(),
                             .weights = weights.raw(),
                             .bad = complaints.count(),
                             .size = points.rows(),
                             .batch_size = batch_size,
                             .corners = static_cast<std::int32_t>(rows.extent(1)),
                             .wide = points.dtype() == DType::f64,
                             .renormalize = renormalize});
  complaints.report("interpolation_map: points", points.rows());
}

void interpolate(jit::KernelRunner& runner, ConstTensorView features,
                 const InterpolationMapView& map, TensorView output) {
  const std::int32_t channels = channels_of(features);
  if (channels == 0) return;
  runner.run(
      ops_kernel("interpolate_points"), chunk_each(output.rows(), channels),
      InterpolateArguments{.rows = list_of(runner, map.rows, features.rows(), "interpolate: rows"),
                           .weights = map.weights.raw(),
                           .in = features.raw(),
                           .out = output.raw(),
                           .points = output.rows(),
                           .corners = static_cast<std::int32_t>(map.rows.extent(1)),
                           .channels = channels,
                           .type = element_type(features.dtype(), "interpolate", "features"),
                           .wide_weights = map.weights.dtype() == DType::f64});
}

void place_rows(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView coordinates,
                const DensePlacement& placement, bool crop, const char* op,
                ConstTensorView features, TensorView dense) {
  move_dense(runner, op, crop,
             {.rows = rows,
              .placement = placement,
              .coordinates = coordinates.data<std::int32_t>(),
              .from = features.raw(),
              .to = dense.raw(),
              .channels = channels_of(features),
              .element_bytes = static_cast<std::int32_t>(size_of(features.dtype()))});
}

void pick_rows(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView coordinates,
               const DensePlacement& placement, bool crop, const char* op, ConstTensorView dense,
               TensorView features) {
  move_dense(runner, op, crop,
             {.rows = rows,
              .placement = placement,
              .coordinates = coordinates.data<std::int32_t>(),
              .from = dense.raw(),
              .to = features.raw(),
              .channels = channels_of(features),
              .element_bytes = static_cast<std::int32_t>(size_of(features.dtype())),
              .to_features = true});
}

}   // namespace pumice::cuda
