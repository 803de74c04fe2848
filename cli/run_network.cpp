// Making networks, and running them on the processor, on a device, and as a graph.
#include "run_network.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/nn/weights.hpp>

#include "core/memory.hpp"

namespace pumice::cli {
namespace {

/// Before the system ends a process that takes more than there is, without a word.
void check_memory(const RunArguments& arguments, const nn::NetworkOptions& options) {
  // Weights are made in f32 and then converted.
  const std::size_t number = std::max(sizeof(float), size_of(arguments.stored().dtype));
  const double needed =
      static_cast<double>(number) *
      static_cast<double>(nn::minkunet42_weights({.widths = options.widths,
                                                  .width_factor = options.width_factor,
                                                  .classes = options.classes}));
  PUMICE_EXPECTS(needed < memory_bytes(), "--width-factor ", arguments.width_factor,
                 ": the weights alone would take ", fmt::format("{:.1f}", needed / kGibibyte),
                 " GiB, and this machine has ", fmt::format("{:.1f}", memory_bytes() / kGibibyte),
                 "; choose a smaller one");
}

std::shared_ptr<nn::Module> prepare_network(const RunArguments& arguments,
                                            const nn::ModelCard& card, NetworkMode mode) {
  nn::NetworkOptions options;
  options.widths = card.widths.value_or(nn::parse_widths(arguments.widths));
  options.width_factor = arguments.width_factor;
  options.seed = arguments.seed;
  options.classes = card.outputs.value_or(options.classes);
  if (nn::find_network(arguments.network).takes_widths) check_memory(arguments, options);
  auto network = nn::make_network(arguments.network, options);
  network->to(arguments.stored().dtype);   // before loading: f64 weights keep their bits
  if (arguments.trained()) nn::load_weights(*network, arguments.weights, {.convert = true});
  if (mode == NetworkMode::training) {
    network->train();
  } else {
    network->eval();
    nn::fold(*network);
  }
  return network;
}

CoordinateBounds bounds_of(const Voxels& voxels) {
  CoordinateBounds bounds;
  const auto* coordinates = voxels.coordinates.data<std::int32_t>();
  const std::int64_t columns = voxels.coordinates.extent(1);
  for (std::int64_t i = 0; i < voxels.size() * columns; ++i) {
    const std::int64_t column = i % columns;
    if (column == 0) continue;   // of the scan
    const auto axis = static_cast<std::size_t>(column - 1);
    bounds.low[axis] = i < columns ? coordinates[i] : std::min(bounds.low[axis], coordinates[i]);
    bounds.high[axis] = i < columns ? coordinates[i] : std::max(bounds.high[axis], coordinates[i]);
  }
  return bounds;
}

/// The rows that are in use, where there may be room for more.
Tensor used_rows(const ConstTensorView& tensor, std::int64_t rows, StreamView stream) {
  return copy_to_host({tensor.raw(), tensor.dtype(), {rows, tensor.extent(1)}, tensor.stream()},
                      stream);
}

Forward brought_to_host(const nn::SparseTensor& result, StreamView stream) {
  Forward forward;
  const std::int64_t rows = result.coordinates->rows().wait_for_host(stream);
  forward.coordinates = used_rows(result.coordinates->coordinates(), rows, stream);
  forward.features = used_rows(result.features, rows, stream);
  forward.stride = result.coordinates->stride();
  return forward;
}

Device checked_device(const RunArguments& arguments) {
  (void)arguments.stored();   // refused before a device is looked for
  return parse_device(arguments.device);
}

}   // namespace

NetworkRun::NetworkRun(const RunArguments& arguments, const nn::ModelCard& card,
                       const nn::NetworkInfo& info, NetworkMode mode)
    : arguments_(arguments),
      mode_(mode),
      grid_(arguments.voxels.grid(info)),
      stream_(checked_device(arguments)) {
  PUMICE_EXPECTS(!arguments.graph || on_device(), "--graph records work for a CUDA device, and ",
                 to_string(stream_.device()), " is none; add --device cuda");
  network_ = prepare_network(arguments, card, mode);
  if (on_device()) network_->to(stream_);
  if (!arguments.graph) return;
  PUMICE_EXPECTS(
      mode == NetworkMode::inference,
      "--graph records forward passes, and --training has backward passes too; leave one "
      "of them out");
  nn::CaptureOptions options;
  options.dataflow = arguments.wanted_dataflow();
  options.numerics = arguments.numerics();
  captured_.emplace(network_, stream_, std::move(options));
}

Forward NetworkRun::forward(const Batch& batch, bool profiled, const LayerProgress& progress) {
  return captured_ && !profiled ? as_graph(batch) : layer_by_layer(batch, profiled, progress);
}

CoordinateOptions NetworkRun::coordinate_options(const Batch& batch) const {
  CoordinateOptions options;
  options.batch_size = static_cast<std::int32_t>(batch.clouds.size());
  options.spatial_shape = grid_;
  return options;
}

nn::Context NetworkRun::context() const {
  nn::Context context;
  context.record = mode_ == NetworkMode::training;
  context.dataflow = arguments_.wanted_dataflow();
  context.numerics = arguments_.numerics();
  return context;
}

NetworkRun::Input NetworkRun::input(const Batch& batch) const {
  Input input{.coordinates = copy_to(stream_, batch.voxels.coordinates),
              .features = copy_to(stream_, batch.voxels.features.to(arguments_.stored().dtype)),
              .options = coordinate_options(batch)};
  input.options.bounds = bounds_of(batch.voxels);   // so that no pass waits to look for them
  return input;
}

void NetworkRun::enqueue(const Input& input, bool may_be_graph) {
  if (captured_ && may_be_graph) {
    (void)captured_->forward(input.coordinates, input.features, input.options);
    return;
  }
  nn::Context context = this->context();
  const nn::SparseTensor result = network_->forward(
      nn::SparseTensor(CoordinateSet::create(input.coordinates, input.options), input.features),
      context);
  if (mode_ == NetworkMode::inference) return;
  network_->clear_gradients();
  nn::backward(result.node, result.features);
}

Forward NetworkRun::layer_by_layer(const Batch& batch, bool profiled,
                                   const LayerProgress& progress) {
  nn::Profile profile;
  nn::Context context = this->context();
  if (profiled) context.profile = &profile;
  profile.expected = network_->layer_count();
  profile.progress = progress;

  const nn::Stopwatch watch;
  CoordinateSetPtr set =
      voxel_set(batch.voxels, static_cast<std::int32_t>(batch.clouds.size()), grid_);
  Tensor features = batch.voxels.features.to(arguments_.stored().dtype);
  if (on_device()) {
    set = CoordinateSet::copy_to(set, stream_);
    features = copy_to(stream_, features);
  }
  nn::SparseTensor input(std::move(set), std::move(features));
  const nn::SparseTensor result = network_->forward(std::move(input), context);
  wait(stream_);
  const double total_ms = watch.ms();
  Forward forward = brought_to_host(result, stream_);
  forward.total_ms = total_ms;
  profile.progress = nullptr;   // what it shows ends here
  forward.profile = std::move(profile);
  return forward;
}

/// Coordinates and features are copied over, and nothing else is done on the host.
Forward NetworkRun::as_graph(const Batch& batch) {
  const Tensor features = batch.voxels.features.to(arguments_.stored().dtype);
  const nn::Stopwatch watch;
  const nn::SparseTensor result =
      captured_->forward(batch.voxels.coordinates, features, coordinate_options(batch));
  wait(stream_);
  const double total_ms = watch.ms();
  Forward forward = brought_to_host(result, stream_);
  forward.total_ms = total_ms;
  return forward;
}

std::vector<double> NetworkRun::device_times(const Batch& batch) {
  const Tensor coordinates = copy_to(stream_, batch.voxels.coordinates);
  const Tensor features = copy_to(stream_, batch.voxels.features.to(arguments_.stored().dtype));
  std::vector<double> times;
  for (int i = 0; i < arguments_.repeat; ++i) {
    Event start(stream_.device(), true);
    Event stop(stream_.device(), true);
    start.record(stream_);
    (void)captured_->forward(coordinates, features, coordinate_options(batch));
    stop.record(stream_);
    wait(stream_);
    times.push_back(milliseconds_between(start, stop));
  }
  return times;
}

}   // namespace pumice::cli
