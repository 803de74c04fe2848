// Sets on a device: copied from the host, and coarser ones made there.
#include "coords/cuda/coordinate_set.hpp"

#include <algorithm>
#include <utility>

#include <pumice/shared/floor_division.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>

#include "coords/cuda/create_sets.hpp"
#include "coords/cuda/decode.hpp"
#include "coords/cuda/upload.hpp"

namespace pumice {

CoordinateSetPtr DeviceSetBuilder::build(Parts parts, StreamView stream) {
  auto result = std::shared_ptr<CoordinateSet>(new CoordinateSet());
  const auto set = std::make_shared<cuda::DeviceSet>(std::move(parts.set));
  result->stream_ = stream;
  result->options_ = std::move(parts.options);
  result->options_.bounds = parts.bounds;
  result->batch_size_ = parts.batch_size;
  result->rows_ = parts.rows
                      ? RowCount::exact(*parts.rows)
                      : RowCount::on_device(std::shared_ptr<std::int64_t>(set, set->row_count()),
                                            set->capacity().rows, stream.device);
  result->decodes_ = !parts.coordinates.defined();
  result->coordinates_ = std::move(parts.coordinates);
  result->index_.layout = set->layout();
  result->on_device_ = set;
  return result;
}

CoordinateSetPtr DeviceSetBuilder::counted(const CoordinateSet& set, std::int64_t rows) {
  auto result = std::shared_ptr<CoordinateSet>(new CoordinateSet());
  result->stream_ = set.stream_;
  result->options_ = set.options_;
  result->batch_size_ = set.batch_size_;
  result->rows_ = RowCount::exact(rows);
  result->decodes_ = true;
  result->index_.layout = set.index_.layout;
  result->on_device_ = set.on_device_;
  return result;
}

void CoordinateSet::decode_on_device() const {
  const std::scoped_lock lock(decoding_);
  if (coordinates_.defined() && rows_.host_knows()) {
    if (decoded_in_ == 0 || decoded_in_ == capture_of(stream_)) return;
    recorded_.push_back(std::exchange(coordinates_, {}));   // of a graph, which may not have run
  }
  decoded_in_ = rows_.host_knows() ? capture_of(stream_) : 0;
  if (!coordinates_.defined())
    coordinates_ = Tensor({rows_.capacity(), 1 + dimension()}, DType::i32, stream_);
  jit::DeviceRunner runner(stream_, default_allocator(stream_.device));
  cuda::decode_coordinates(runner, on_device_->ref(), coordinates_.view());
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

std::int64_t likely_rows(const CoordinateSet& set) {
  const std::int64_t room = set.rows().capacity();
  if (set.rows().host_knows() || set.on_device() == nullptr) return room;
  const std::int64_t likely = set.on_device()->capacity().likely_rows;
  return likely > 0 ? std::min(likely, room) : room;
}

CoordinateSetPtr upload(const CoordinateSet& set, StreamView stream) {
  PUMICE_EXPECTS(set.device().kind == DeviceKind::cpu, "a coordinate set is on ",
                 to_string(set.device()), " already; make it from coordinates on ",
                 to_string(stream.device));
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  const Tensor& on_host = set.coordinates();
  Tensor coordinates(on_host.shape(), DType::i32, stream);
  upload(runner, static_cast<std::uint32_t*>(coordinates.raw()),
         {static_cast<const std::uint32_t*>(on_host.raw()),
          static_cast<std::size_t>(on_host.elements())});
  const SetCapacity capacity = capacity_for_rows(set.size());
  CreatedSets made = create_sets(
      runner,
      {.data = static_cast<const std::int32_t*>(coordinates.raw()), .rows = {nullptr, set.size()}},
      {.layout = set.layout(),
       .columns = columns_of(set.layout(), set.batch_size()),
       .capacities = {capacity}});
  return DeviceSetBuilder::build({.set = std::move(made.sets.front()),
                                  .rows = set.size(),
                                  .coordinates = std::move(coordinates),
                                  .batch_size = set.batch_size(),
                                  .options = set.options(),
                                  .bounds = set.options().bounds.value_or(bounds_of(set))},
                                 stream);
}

CoordinateSetPtr download(const CoordinateSet& set) {
  const RowCount& count = set.rows();
  const std::int64_t rows = count.host_knows() ? count.host() : count.wait_for_host(set.stream());
  const Tensor all = copy_to_host(set.coordinates(), set.stream());   // a plan's has room for more
  CoordinateOptions options = set.options();
  options.batch_size = set.batch_size();
  return CoordinateSet::create({all.raw(), all.dtype(), Shape{rows, all.extent(1)}}, options);
}

CoordinateSetPtr finish_set(jit::KernelRunner& runner, DeviceSet made, const CoordinateSet& from,
                            const CoordinateOptions& options, const CoordinateBounds& bounds,
                            const Room& room) {
  const StreamView stream = runner.stream();
  std::optional<std::int64_t> rows;
  if (!room) rows = wait_for_sites(made, stream, "a set that is made of another");
  return DeviceSetBuilder::build({.set = std::move(made),
                                  .rows = rows,
                                  .batch_size = from.batch_size(),
                                  .options = options,
                                  .bounds = bounds},
                                 stream);
}

std::vector<CoordinateSetPtr> planned_sets(const Tensor& coordinates, const RowCount& rows,
                                           const PlannedCoordinates& planned,
                                           std::span<std::uint32_t> also_zeroed) {
  const StreamView stream = coordinates.stream();
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  DeclaredColumns columns;
  columns.high[0] = planned.batch_size - 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(planned.layout.dimension); ++axis) {
    columns.low[axis + 1] = planned.bounds.low[axis];
    columns.high[axis + 1] = planned.bounds.high[axis];
  }
  CreatedSets made = create_sets(
      runner, {.data = static_cast<const std::int32_t*>(coordinates.raw()), .rows = rows.ref()},
      {.layout = planned.layout,
       .columns = columns,
       .capacities = planned.capacities,
       .also_zeroed = also_zeroed});
  return build_planned(std::move(made.sets), coordinates, planned, stream);
}

std::vector<CoordinateSetPtr> build_planned(std::vector<DeviceSet> made, const Tensor& coordinates,
                                            const PlannedCoordinates& planned, StreamView stream) {
  std::vector<CoordinateSetPtr> sets;
  CoordinateSetPtr finer;
  for (DeviceSet& set : made) {
    DeviceSetBuilder::Parts parts{.set = std::move(set),
                                  .batch_size = planned.batch_size,
                                  .options = planned.options,
                                  .bounds = planned.bounds};
    if (finer == nullptr) {
      parts.coordinates = coordinates;
    } else {
      parts.options = finer->options();
      parts.bounds = *finer->options().bounds;
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(finer->dimension()); ++axis) {
        parts.options.stride[axis] *= 2;
        parts.bounds.low[axis] = static_cast<std::int32_t>(floor_divide(parts.bounds.low[axis], 2));
        parts.bounds.high[axis] =
            static_cast<std::int32_t>(floor_divide(parts.bounds.high[axis], 2));
      }
    }
    finer = DeviceSetBuilder::build(std::move(parts), stream);
    sets.push_back(finer);
  }
  return sets;
}

CoordinateSetPtr empty_set(jit::KernelRunner& runner, const CoordinateSet& like,
                           const CoordinateOptions& options) {
  CreatedSets made = create_sets(runner, {.data = nullptr, .rows = {nullptr, 0}},
                                 {.layout = like.layout(),
                                  .columns = columns_of(like.layout(), like.batch_size()),
                                  .capacities = {capacity_for_rows(0)}});
  return DeviceSetBuilder::build({.set = std::move(made.sets.front()),
                                  .rows = 0,
                                  .batch_size = like.batch_size(),
                                  .options = options},
                                 runner.stream());
}

}   // namespace cuda

CoordinateSetPtr CoordinateSet::copy_to(const CoordinateSetPtr& set, StreamView stream) {
  PUMICE_EXPECTS(set != nullptr, "coordinate set is null; give one");
  if (set->stream() == stream) return set;
  return stream.device.kind == DeviceKind::cpu ? cuda::download(*set) : cuda::upload(*set, stream);
}

}   // namespace pumice
