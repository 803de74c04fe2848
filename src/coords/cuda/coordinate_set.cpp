// Sets on a device: copied from the host, and coarser ones made there.
#include "coords/cuda/coordinate_set.hpp"

#include <algorithm>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>

#include "coords/cuda/create_sets.hpp"
#include "coords/cuda/decode.hpp"

namespace pumice {

CoordinateSetPtr DeviceSetBuilder::build(cuda::DeviceSet set, RowCount rows, Tensor coordinates,
                                         std::int32_t batch_size, const CoordinateOptions& options,
                                         const CoordinateBounds& bounds, StreamView stream) {
  auto result = std::shared_ptr<CoordinateSet>(new CoordinateSet());
  result->stream_ = stream;
  result->options_ = options;
  result->options_.bounds = bounds;
  result->batch_size_ = batch_size;
  result->rows_ = std::move(rows);
  result->coordinates_ = std::move(coordinates);
  result->index_.layout = set.layout();
  result->on_device_ = std::make_shared<const cuda::DeviceSet>(std::move(set));
  return result;
}

namespace cuda {
namespace {

/// Every coordinate that has a key, so that nothing the host has checked is refused.
DeclaredColumns columns_of(const KeyLayout& layout, std::int32_t batch_size) {
  DeclaredColumns columns;
  columns.high[0] = std::max(batch_size - 1, 0);
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis) + 1;
    const std::int64_t low = -layout.bias[axis];
    const std::int64_t high = low + (std::int64_t{1} << layout.bits[axis]) - 1;
    columns.low[at] = static_cast<std::int32_t>(std::max<std::int64_t>(low, INT32_MIN));
    columns.high[at] = static_cast<std::int32_t>(std::min<std::int64_t>(high, INT32_MAX));
  }
  return columns;
}

CoordinateBounds bounds_of(const CoordinateSet& set) {
  CoordinateBounds bounds;
  const auto values = set.coordinates().span<std::int32_t>();
  const auto columns = static_cast<std::size_t>(set.dimension()) + 1;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (at % columns == 0) continue;
    const std::size_t axis = at % columns - 1;
    std::int32_t& low = bounds.low[axis];
    std::int32_t& high = bounds.high[axis];
    low = at < columns ? values[at] : std::min(low, values[at]);
    high = at < columns ? values[at] : std::max(high, values[at]);
  }
  return bounds;
}

}   // namespace

CoordinateSetRef ref_of(const CoordinateSet& set) {
  PUMICE_ENSURES(set.on_device() != nullptr, "a coordinate set on the CPU is given to a kernel");
  CoordinateSetRef ref = set.on_device()->ref();
  ref.rows = set.rows().ref();
  return ref;
}

CoordinateSetPtr upload(const CoordinateSet& set, StreamView stream) {
  PUMICE_EXPECTS(set.device().kind == DeviceKind::cpu, "a coordinate set is on ",
                 to_string(set.device()), " already; make it from coordinates on ",
                 to_string(stream.device));
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  Tensor coordinates = pumice::copy_to(stream, set.coordinates());
  const SetCapacity capacity = capacity_for_rows(set.size());
  CreatedSets made = create_sets(
      runner,
      {.data = static_cast<const std::int32_t*>(coordinates.raw()), .rows = {nullptr, set.size()}},
      {.layout = set.layout(),
       .columns = columns_of(set.layout(), set.batch_size()),
       .capacities = {capacity}});
  return DeviceSetBuilder::build(std::move(made.sets.front()), RowCount::exact(set.size()),
                                 std::move(coordinates), set.batch_size(), set.options(),
                                 set.options().bounds.value_or(bounds_of(set)), stream);
}

CoordinateSetPtr wait_for_set(jit::KernelRunner& runner, DeviceSet made, const CoordinateSet& from,
                              const CoordinateOptions& options, const CoordinateBounds& bounds) {
  const StreamView stream = runner.stream();
  const std::int64_t rows = copy_to_host(made.rows().count, 1, stream).front();
  Tensor coordinates = decode_coordinates(runner, made, rows);
  return DeviceSetBuilder::build(std::move(made), RowCount::exact(rows), std::move(coordinates),
                                 from.batch_size(), options, bounds, stream);
}

CoordinateSetPtr empty_set(jit::KernelRunner& runner, const CoordinateSet& like,
                           const CoordinateOptions& options) {
  CreatedSets made = create_sets(runner, {.data = nullptr, .rows = {nullptr, 0}},
                                 {.layout = like.layout(),
                                  .columns = columns_of(like.layout(), like.batch_size()),
                                  .capacities = {capacity_for_rows(0)}});
  return DeviceSetBuilder::build(
      std::move(made.sets.front()), RowCount::exact(0),
      Tensor({0, 1 + like.dimension()}, DType::i32, runner.stream(), runner.allocator()),
      like.batch_size(), options, {}, runner.stream());
}

}   // namespace cuda

CoordinateSetPtr CoordinateSet::copy_to(const CoordinateSetPtr& set, StreamView stream) {
  PUMICE_EXPECTS(set != nullptr, "coordinate set is null; give one");
  if (set->stream() == stream) return set;
  return cuda::upload(*set, stream);
}

}   // namespace pumice
