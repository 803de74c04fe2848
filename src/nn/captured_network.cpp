// Learning a plan, recording it, launching it.
#include <pumice/nn/captured_network.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream_heap.hpp>
#include <pumice/ops/operator_calls.hpp>
#include <pumice/plan/plan_book.hpp>
#include <pumice/plan/shared_cuts.hpp>

#include "coords/cpu/key_list.hpp"
#include "core/cuda/graph.hpp"
#include "formats/cuda/map_plan.hpp"

namespace pumice::nn {
namespace {

constexpr std::int64_t kRowStep = 1024;   // capacities are multiples of it
// Of graphs with plans that are not in use: tuning goes back and forth between two books.
constexpr std::size_t kMostOldGraphs = 4;

std::int32_t clamped(std::int64_t value) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp(value, kLow, kHigh));
}

/// The bounds of the coordinates, wider by half their extent on either side, in a declared grid.
CoordinateBounds wide_bounds(ConstTensorView coordinates, const CoordinateOptions& options) {
  const Bounds seen = bounds_of(coordinates);
  CoordinateBounds bounds;
  for (std::size_t axis = 0; axis + 1 < static_cast<std::size_t>(coordinates.extent(1)); ++axis) {
    const std::int64_t more = (seen.high[axis] - seen.low[axis]) / 2 + 1;
    bounds.low[axis] = clamped(seen.low[axis] - more);
    bounds.high[axis] = clamped(seen.high[axis] + more);
    if (!options.spatial_shape) continue;
    bounds.low[axis] = 0;
    bounds.high[axis] = (*options.spatial_shape)[axis] - 1;
  }
  return bounds;
}

std::int64_t room_for(std::int64_t rows, double margin) {
  const auto wanted = static_cast<std::int64_t>(std::ceil(static_cast<double>(rows) * margin));
  return std::max(kRowStep, (wanted + kRowStep - 1) / kRowStep * kRowStep);
}

bool same_grid(const CoordinateOptions& left, const CoordinateOptions& right) {
  return left.stride == right.stride && left.spatial_shape == right.spatial_shape &&
         left.batch_size == right.batch_size;
}

Context context_of(const CaptureOptions& options) {
  Context context;
  context.dataflow = options.dataflow;
  context.numerics = options.numerics;
  return context;
}

/// Where inputs lie for a graph: always at the same addresses.
struct Inputs {
  Tensor coordinates;   // i32 [room, 1 + D]
  Tensor features;      // [room, C]
  std::shared_ptr<Buffer<std::int64_t>> count;

  Inputs(std::int64_t room, const ConstTensorView& like_coordinates,
         const ConstTensorView& like_features, StreamView stream)
      : coordinates(Tensor::zeros({room, like_coordinates.extent(1)}, DType::i32, stream)),
        features(Tensor::zeros({room, like_features.extent(1)}, like_features.dtype(), stream)),
        count(std::make_shared<Buffer<std::int64_t>>(1, stream)) {}

  void fill(const ConstTensorView& new_coordinates, const ConstTensorView& new_features) {
    const StreamView stream = features.stream();
    const std::int64_t rows = new_coordinates.rows();
    copy_rows(coordinates.view(), new_coordinates);
    copy_rows(features.view(), new_features);
    copy_async(count->data(), stream.device, &rows, {}, sizeof(rows), stream);
  }
  RowCount rows() const {
    return RowCount::on_device(std::shared_ptr<std::int64_t>(count, count->data()),
                               coordinates.rows(), coordinates.device());
  }

 private:
  static void copy_rows(TensorView to, const ConstTensorView& from) {
    const auto bytes = static_cast<std::size_t>(from.elements()) * size_of(from.dtype());
    copy_async(to.raw(), to.device(), from.raw(), from.device(), bytes, to.stream());
  }
};

}   // namespace

struct CapturedNetwork::Capture {
  CoordinateOptions options;
  std::uint64_t weight_version = 0;
  std::uint64_t plans = 0;   // plans_in_use() when it was recorded
  Inputs inputs;
  std::shared_ptr<StreamHeap> heap;
  cuda::MapPlan::Made made{};   // what the graph's kernels fill
  SparseTensor result{};
  std::optional<cuda::Graph> graph{};

  std::int64_t room() const { return inputs.features.rows(); }

  /// Sets, maps and layers, enqueued or recorded.
  void run(Module& network, const cuda::MapPlan& plan, Context context) {
    const AllocatorScope scope(inputs.features.device(), heap, ScopeOf::one_pass);
    result = {};
    made = {};   // what an earlier run made goes first, so that memory is the same each time
    made = plan.make(inputs.coordinates, inputs.rows());
    SparseTensor x;
    x.coordinates = made.input;
    x.features = inputs.features;
    x.maps = made.maps;
    result = network.forward(std::move(x), context);
    (void)result.coordinates->coordinates();   // worked out by the graph too
  }

  /// Runs until a run has found room for all it asks for: the next one then places everything where
  /// that one did. A region that is added in a run changes where the next one finds room.
  void take_memory(Module& network, const cuda::MapPlan& plan, const Context& context) {
    for (std::int64_t before = -1; before != heap->reserved_bytes();) {
      before = heap->reserved_bytes();
      run(network, plan, context);
      wait(inputs.features.stream());
    }
    // Other graphs write over it.
    result = {};
    made = {};
    PUMICE_ENSURES(heap->used_bytes() == 0, "of memory that graphs share, ", heap->used_bytes(),
                   " bytes are kept by what outlives a pass");
  }
};

CapturedNetwork::CapturedNetwork(std::shared_ptr<Module> network, StreamView stream,
                                 CaptureOptions options)
    : network_(std::move(network)), stream_(stream), options_(std::move(options)) {
  PUMICE_EXPECTS(network_ != nullptr, "captured network: network is null; give one");
  PUMICE_EXPECTS(stream.device.kind == DeviceKind::cuda && stream.native != nullptr,
                 "captured network: stream is of ", to_string(stream.device),
                 ", or its default one; make a Stream of a CUDA device");
  PUMICE_EXPECTS(options_.margin >= 1 && std::isfinite(options_.margin),
                 "captured network: margin = ", options_.margin, "; it is at least 1");
  PUMICE_EXPECTS(options_.dataflow != Dataflow::gather_gemm_scatter,
                 "captured network: dataflow gather_gemm_scatter waits for the numbers of pairs, "
                 "which a graph cannot; choose fetch_on_demand or implicit_gemm");
  for (const NamedParameter& named : network_->parameters())
    parameters_.push_back(named.parameter);
}

CapturedNetwork::CapturedNetwork(CapturedNetwork&&) noexcept = default;
CapturedNetwork& CapturedNetwork::operator=(CapturedNetwork&&) noexcept = default;
CapturedNetwork::~CapturedNetwork() = default;

std::uint64_t CapturedNetwork::weight_version() const {
  std::uint64_t version = 0;
  for (const ParameterPtr& parameter : parameters_)
    version += parameter->version();
  return version;
}

CapturedNetwork::Capture* CapturedNetwork::find(const ConstTensorView& coordinates,
                                                const ConstTensorView& features,
                                                const CoordinateOptions& options) {
  const std::int64_t rows = coordinates.rows();
  const std::uint64_t plans = plans_in_use();
  // Twice as much room as rows is another size: every launch is for all of the room.
  for (const auto& capture : captures_) {
    if (capture->plans != plans) continue;
    if (capture->room() < rows || capture->room() > 2 * room_for(rows, options_.margin)) continue;
    const Tensor& held = capture->inputs.features;
    if (capture->inputs.coordinates.extent(1) == coordinates.extent(1) &&
        held.extent(1) == features.extent(1) && held.dtype() == features.dtype() &&
        same_grid(capture->options, options))
      return capture.get();
  }
  return nullptr;
}

CapturedNetwork::Capture& CapturedNetwork::learn(const ConstTensorView& coordinates,
                                                 const ConstTensorView& features,
                                                 const CoordinateOptions& options) {
  const Tensor on_host = copy_to_host(coordinates, stream_);
  const CoordinateSetPtr set =
      CoordinateSet::copy_to(CoordinateSet::create(on_host, options), stream_);
  const SparseTensor x(set, copy_to(stream_, features));
  Context context = context_of(options_);
  std::vector<OperatorCall> calls;
  {
    ThreadCalls noted;
    (void)network_->forward(x, context);   // compiles kernels and packs weights, too
    calls = noted.take();
  }
  PlanBook shared;
  if (options_.shares_cuts)
    shared = plans_of_shared_cuts(layers_on_maps(calls), target_of(stream_.device));
  context.shared_plans = &shared;
  PlanRoom room{.rows = room_for(set->size(), options_.margin),
                .bounds = options_.bounds ? *options_.bounds : wide_bounds(on_host, options),
                .margin = options_.margin};
  cuda::MapPlan plan(*x.maps, set, room);

  auto capture =
      std::make_unique<Capture>(Capture{.options = options,
                                        .weight_version = weight_version(),
                                        .plans = plans_in_use(),
                                        .inputs = Inputs(room.rows, coordinates, features, stream_),
                                        .heap = shared_memory()});
  capture->inputs.fill(coordinates, features);
  // With room for more rows, and plans for all layers of a map, other tiles are chosen: the second
  // run says which, and packs weights for them.
  capture->run(*network_, plan, context);
  wait(stream_);
  const cuda::MapPlan final_plan(*capture->made.maps, capture->made.input, room);
  capture->take_memory(*network_, final_plan, context);
  capture->graph =
      cuda::Graph::capture(stream_, [&] { capture->run(*network_, final_plan, context); });
  const auto behind = std::find_if(captures_.begin(), captures_.end(), [&](const auto& other) {
    return other->room() > capture->room();
  });
  return **captures_.insert(behind, std::move(capture));
}

/// One graph runs at a time, and makes anew all it reads but its inputs and the weights.
std::shared_ptr<StreamHeap> CapturedNetwork::shared_memory() const {
  return captures_.empty() ? std::make_shared<StreamHeap>(stream_)
                           : std::make_shared<StreamHeap>(*captures_.front()->heap);
}

void CapturedNetwork::forget_old_plans() {
  const std::uint64_t plans = plans_in_use();
  const auto is_old = [&](const auto& capture) { return capture->plans != plans; };
  const auto old = std::count_if(captures_.begin(), captures_.end(), is_old);
  if (old >= static_cast<std::ptrdiff_t>(kMostOldGraphs)) std::erase_if(captures_, is_old);
}

SparseTensor CapturedNetwork::forward(const ConstTensorView& coordinates,
                                      const ConstTensorView& features,
                                      const CoordinateOptions& options) {
  PUMICE_EXPECTS(!network_->training(),
                 "captured network: the network is in training mode; call eval() first");
  PUMICE_EXPECTS(coordinates.rank() == 2 && coordinates.dtype() == DType::i32,
                 "captured network: coordinates are ", name_of(coordinates.dtype()), ' ',
                 to_string(coordinates.shape()), "; give int32 [N, 1 + D]");
  PUMICE_EXPECTS(features.rank() == 2 && features.rows() == coordinates.rows(),
                 "captured network: features ", to_string(features.shape()), " for ",
                 coordinates.rows(), " coordinates; give one row each");
  CoordinateOptions declared = options;
  if (!declared.batch_size) declared.batch_size = 1;
  declared.bounds.reset();   // CaptureOptions has those of all scans
  const std::uint64_t version = weight_version();
  std::erase_if(captures_, [&](const auto& capture) { return capture->weight_version != version; });
  Capture* capture = find(coordinates, features, declared);
  if (capture == nullptr) forget_old_plans();
  if (capture == nullptr) capture = &learn(coordinates, features, declared);
  capture->inputs.fill(coordinates, features);
  capture->graph->launch();
  return capture->result;
}

std::vector<CapturedNetwork::Graph> CapturedNetwork::graphs() const {
  std::vector<Graph> result;
  for (const auto& capture : captures_) {
    result.push_back({.rows = capture->room(),
                      .nodes = static_cast<std::int64_t>(capture->graph->nodes()),
                      .bytes = capture->heap->reserved_bytes()});
  }
  return result;
}

}   // namespace pumice::nn
