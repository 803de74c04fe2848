// `pumice run`: a network over one or several scans, layer by layer.
#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/weights.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "memory.hpp"
#include "picture.hpp"
#include "statistics.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct RunArguments {
  std::string network;
  std::vector<std::string> scans;
  ScanArguments reading;
  VoxelArguments voxels;
  std::string weights;
  std::string widths = "spvnas";
  double width_factor = 1;
  std::uint64_t seed = 0;
  std::string precision = "f32";
  std::string device = "cpu";
  bool graph = false;
  bool deterministic = false;
  std::string dataflow;
  int repeat = 1;
  std::string out;
  std::string picture;
  bool json = false;

  Precision stored() const { return parse_precision(precision, parse_device(device)); }
  std::optional<Dataflow> wanted_dataflow() const {
    return dataflow.empty() ? std::nullopt : std::optional(parse_dataflow(dataflow));
  }
};

/// The scans of a batch, side by side, and the voxels they make.
struct Batch {
  std::vector<PointCloud> clouds;
  Voxels voxels;
  std::int64_t points = 0;
  std::int64_t dropped_points = 0;
  double voxelize_ms = 0;
};

Batch read_batch(const RunArguments& arguments, const nn::NetworkInfo& info) {
  Batch batch;
  for (const std::string& scan : arguments.scans) {
    batch.clouds.push_back(arguments.reading.read(scan));
    batch.points += batch.clouds.back().size();
    batch.dropped_points += batch.clouds.back().dropped_points;
  }

  std::vector<Tensor> features;
  std::vector<FeaturedCloud> featured;
  for (const PointCloud& cloud : batch.clouds)
    features.push_back(point_features(cloud));
  for (std::size_t i = 0; i < features.size(); ++i)
    featured.push_back({&batch.clouds[i], features[i]});
  const VoxelOptions options = arguments.voxels.options(info);
  const nn::Stopwatch watch;
  batch.voxels = voxelize_batch(featured, options);
  batch.voxelize_ms = watch.ms();
  return batch;
}

/// Before the system ends a process that takes more than there is, without a word.
void check_memory(const RunArguments& arguments, const nn::NetworkOptions& options) {
  // Weights are made in f32 and then converted.
  const std::size_t number = std::max(sizeof(float), size_of(arguments.stored().dtype));
  const double needed = static_cast<double>(number) *
                        static_cast<double>(nn::minkunet42_weights(
                            {.widths = options.widths, .width_factor = options.width_factor}));
  PUMICE_EXPECTS(needed < memory_bytes(), "--width-factor ", arguments.width_factor,
                 ": the weights alone would take ", fmt::format("{:.1f}", needed / kGibibyte),
                 " GiB, and this machine has ", fmt::format("{:.1f}", memory_bytes() / kGibibyte),
                 "; choose a smaller one");
}

std::shared_ptr<nn::Module> prepare_network(const RunArguments& arguments) {
  nn::NetworkOptions options;
  options.widths = nn::parse_widths(arguments.widths);
  options.width_factor = arguments.width_factor;
  options.seed = arguments.seed;
  if (nn::find_network(arguments.network).takes_widths) check_memory(arguments, options);
  auto network = nn::make_network(arguments.network, options);
  network->to(arguments.stored().dtype);   // before loading: f64 weights keep their bits
  if (!arguments.weights.empty()) nn::load_weights(*network, arguments.weights, {.convert = true});
  network->eval();
  nn::fold(*network);
  return network;
}

/// What came out, brought to the host.
struct Forward {
  Tensor coordinates;
  Tensor features;
  Axes stride{};
  nn::Profile profile;
  double total_ms = 0;

  /// Whether rows are those of the voxels; if not they are coarser.
  bool on_voxels() const { return stride == Axes{1, 1, 1, 1}; }
};

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

/// The time holds everything from voxels on the host to scores where they are computed; without
/// `profiled` nothing is waited for in between.
Forward run_once(nn::Module& network, const RunArguments& arguments, const Batch& batch,
                 const std::optional<Axes>& grid, StreamView stream, bool profiled) {
  nn::Profile profile;
  nn::Context context;
  if (profiled) context.profile = &profile;
  context.dataflow = arguments.wanted_dataflow();
  context.deterministic = arguments.deterministic;
  context.tf32 = arguments.stored().tf32;
  ProgressBar bar(arguments.network);
  profile.expected = network.layer_count();
  profile.progress = [&](int done, int count) { bar.show(done, count); };

  const nn::Stopwatch watch;
  CoordinateSetPtr set =
      voxel_set(batch.voxels, static_cast<std::int32_t>(batch.clouds.size()), grid);
  Tensor features = batch.voxels.features.to(arguments.stored().dtype);
  if (stream.device.kind == DeviceKind::cuda) {
    set = CoordinateSet::copy_to(set, stream);
    features = copy_to(stream, features);
  }
  nn::SparseTensor input(std::move(set), std::move(features));
  const nn::SparseTensor result = network.forward(std::move(input), context);
  wait(stream);
  const double total_ms = watch.ms();
  Forward forward = brought_to_host(result, stream);
  forward.total_ms = total_ms;
  profile.progress = nullptr;   // the bar ends here
  forward.profile = std::move(profile);
  return forward;
}

/// The same through a graph: coordinates and features are copied over, and nothing else is done on
/// the host.
Forward run_graph(nn::CapturedNetwork& network, const RunArguments& arguments, const Batch& batch,
                  const std::optional<Axes>& grid, StreamView stream) {
  CoordinateOptions options;
  options.batch_size = static_cast<std::int32_t>(batch.clouds.size());
  options.spatial_shape = grid;
  const Tensor features = batch.voxels.features.to(arguments.stored().dtype);
  const nn::Stopwatch watch;
  const nn::SparseTensor result = network.forward(batch.voxels.coordinates, features, options);
  wait(stream);
  const double total_ms = watch.ms();
  Forward forward = brought_to_host(result, stream);
  forward.total_ms = total_ms;
  return forward;
}

/// Milliseconds on the device alone, with the scan there already.
std::vector<double> device_times(nn::CapturedNetwork& network, const RunArguments& arguments,
                                 const Batch& batch, const std::optional<Axes>& grid,
                                 StreamView stream) {
  CoordinateOptions options;
  options.batch_size = static_cast<std::int32_t>(batch.clouds.size());
  options.spatial_shape = grid;
  const Tensor coordinates = copy_to(stream, batch.voxels.coordinates);
  const Tensor features = copy_to(stream, batch.voxels.features.to(arguments.stored().dtype));
  std::vector<double> times;
  for (int i = 0; i < arguments.repeat; ++i) {
    Event start(stream.device, true);
    Event stop(stream.device, true);
    start.record(stream);
    (void)network.forward(coordinates, features, options);
    stop.record(stream);
    wait(stream);
    times.push_back(milliseconds_between(start, stop));
  }
  return times;
}

/// From /proc, since getrusage counts what the parent had in use before it became this program.
double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;   // kibibytes
  }
  throw Error("/proc/self/status: VmHWM, the peak of resident memory, is missing");
}

std::string layer_table(const nn::Profile& profile) {
  Table table({"<layer", "<kind", "rows", "pairs", "channels", "map ms", "ms", "GFLOP/s", "<plan"});
  const auto positive = [](double value, const char* pattern) {
    return value > 0 ? fmt::format(fmt::runtime(pattern), value) : std::string();
  };
  for (const nn::LayerRecord& layer : profile.layers) {
    table.add({layer.name, layer.kind, with_commas(layer.out_rows),
               layer.pairs > 0 ? with_commas(layer.pairs) : "",
               fmt::format("{} > {}", layer.in_channels, layer.out_channels),
               positive(layer.map_ms, "{:.2f}"), fmt::format("{:.2f}", layer.ms),
               positive(layer.ms > 0 ? layer.gflop / layer.ms * 1e3 : 0, "{:.0f}"), layer.plan});
  }
  table.add_rule();
  table.add(
      {"all layers", "", "", "", "", fmt::format("{:.2f}", profile.map_ms()),
       fmt::format("{:.2f}", profile.total_ms()),
       positive(profile.total_ms() > 0 ? profile.gflop() / profile.total_ms() * 1e3 : 0, "{:.0f}"),
       fmt::format("{:.1f} GFLOP", profile.gflop())});
  return table.text();
}

nlohmann::ordered_json to_json(const nn::Profile& profile) {
  auto layers = nlohmann::ordered_json::array();
  for (const nn::LayerRecord& layer : profile.layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"rows_in", layer.in_rows},
                      {"rows", layer.out_rows},
                      {"pairs", layer.pairs},
                      {"channels_in", layer.in_channels},
                      {"channels_out", layer.out_channels},
                      {"map_ms", layer.map_ms},
                      {"ms", layer.ms},
                      {"gflop", layer.gflop},
                      {"plan", layer.plan}});
  }
  return layers;
}

nlohmann::ordered_json to_json(const nn::CapturedNetwork& captured) {
  const nn::CapturedNetwork::Graph graph = captured.graphs().front();
  return {{"room", graph.rows}, {"nodes", graph.nodes}, {"bytes", graph.bytes}};
}

/// Class with the highest score for every point of the first scan; -1 where it is in no voxel.
std::vector<std::int32_t> point_classes(const Batch& batch, const Tensor& scores) {
  const Tensor values = scores.to(DType::f32);
  const std::int64_t classes = values.extent(1);
  std::vector<std::int32_t> result(static_cast<std::size_t>(batch.clouds[0].size()), -1);
  const std::int64_t* voxel = batch.voxels.point_to_voxel.data<std::int64_t>();
  for (std::size_t point = 0; point < result.size(); ++point) {
    if (voxel[point] < 0) continue;
    const float* row = values.data<float>() + voxel[point] * classes;
    result[point] = static_cast<std::int32_t>(std::max_element(row, row + classes) - row);
  }
  return result;
}

void write_result(const std::string& path, const Forward& forward, const Batch& batch) {
  const Tensor features = forward.features.to(DType::f32);
  std::vector<std::pair<std::string, ConstTensorView>> tensors{
      {"coords", forward.coordinates},
      {"features", features},
      {"point_to_voxel", batch.voxels.point_to_voxel}};
  if (!forward.on_voxels()) tensors.emplace_back("input_coords", batch.voxels.coordinates);
  write_safetensors(path, tensors);
}

/// Voxels of the first scan.
std::int64_t first_voxels(const Batch& batch) {
  const auto* coordinates = batch.voxels.coordinates.data<std::int32_t>();
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < batch.voxels.size(); ++row)
    count += coordinates[4 * row] == 0 ? 1 : 0;
  return count;
}

/// The first scan, whatever else is in the batch.
void draw(const RunArguments& arguments, const Batch& batch, const Forward& forward) {
  PictureOptions options;
  options.caption =
      fmt::format("{} on {}: {} points, {} voxels", arguments.network,
                  std::filesystem::path(arguments.scans[0]).filename().string(),
                  with_commas(batch.clouds[0].size()), with_commas(first_voxels(batch)));
  if (batch.clouds.size() > 1)
    options.caption += fmt::format(" (first of {} scans)", batch.clouds.size());
  std::vector<std::int32_t> classes;
  if (forward.on_voxels()) {
    classes = point_classes(batch, forward.features);
    options.by = ColourBy::label;
    options.caption += arguments.weights.empty() ? ", untrained weights" : "";
  } else {
    options.by = ColourBy::height;
  }
  write_png(arguments.picture, render(batch.clouds[0], classes, options));
}

void run(const RunArguments& arguments) {
  std::vector<std::filesystem::path> inputs(arguments.scans.begin(), arguments.scans.end());
  inputs.emplace_back(arguments.weights);
  check_outputs(inputs, {arguments.out, arguments.picture});
  if (!arguments.picture.empty()) check_ending("--picture", arguments.picture, ".png", "a picture");
  PUMICE_EXPECTS(arguments.repeat >= 1, "--repeat = ", arguments.repeat, ": ask for at least 1");
  const nn::NetworkInfo& info = nn::find_network(arguments.network);
  PUMICE_EXPECTS(info.takes_widths || (arguments.widths == "spvnas" && arguments.width_factor == 1),
                 "--widths and --width-factor change minkunet42; ", arguments.network,
                 " has one set of widths, so leave them out");
  const Device device = parse_device(arguments.device);
  const Stream stream(device);
  const bool on_device = device.kind == DeviceKind::cuda;
  PUMICE_EXPECTS(!arguments.graph || on_device, "--graph records work for a CUDA device, and ",
                 to_string(device), " is none; add --device cuda");
  const auto network = prepare_network(arguments);
  if (on_device) network->to(stream);
  const Batch batch = read_batch(arguments, info);
  const std::optional<Axes> grid = arguments.voxels.grid(info);

  std::optional<nn::CapturedNetwork> captured;
  if (arguments.graph) {
    nn::CaptureOptions options;
    options.dataflow = arguments.wanted_dataflow();
    options.deterministic = arguments.deterministic;
    options.tf32 = arguments.stored().tf32;
    captured.emplace(network, stream, std::move(options));
    run_graph(*captured, arguments, batch, grid, stream);   // learns and records
  }
  std::vector<double> totals;
  Forward forward;
  for (int i = 0; i < arguments.repeat; ++i) {
    forward = Forward{};   // let the previous result go before the next one is made
    forward = captured ? run_graph(*captured, arguments, batch, grid, stream)
                       : run_once(*network, arguments, batch, grid, stream, !on_device);
    totals.push_back(forward.total_ms);
  }
  std::vector<double> device_ms;
  if (captured) device_ms = device_times(*captured, arguments, batch, grid, stream);
  // Waiting for each layer takes longer than all of them, so their times come from a run of their
  // own.
  if (on_device) forward.profile = run_once(*network, arguments, batch, grid, stream, true).profile;
  if (!arguments.out.empty()) write_result(arguments.out, forward, batch);
  if (!arguments.picture.empty()) draw(arguments, batch, forward);

  if (arguments.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"network", arguments.network},
                                              {"scans", arguments.scans},
                                              {"points", batch.points},
                                              {"dropped_points", batch.dropped_points},
                                              {"voxels", batch.voxels.size()},
                                              {"rows_out", forward.features.rows()},
                                              {"channels_out", forward.features.extent(1)},
                                              {"device", to_string(device)},
                                              {"graph", captured ? to_json(*captured)
                                                                 : nlohmann::ordered_json(nullptr)},
                                              {"threads", threads()},
                                              {"precision", arguments.precision},
                                              {"trained", !arguments.weights.empty()},
                                              {"voxelize_ms", batch.voxelize_ms},
                                              {"map_ms", forward.profile.map_ms()},
                                              {"total_ms", totals},
                                              {"device_ms", device_ms},
                                              {"gflop", forward.profile.gflop()},
                                              {"peak_mib", peak_mebibytes()},
                                              {"layers", to_json(forward.profile)}}
                           .dump());
    return;
  }
  fmt::print("{}\n", layer_table(forward.profile));
  const std::string where =
      on_device ? "on " + to_string(device)
                : fmt::format("with {} thread{}", threads(), threads() == 1 ? "" : "s");
  fmt::print("{} points{} -> {} voxels in {:.2f} ms; network {:.1f} ms {} in {}, maps included\n",
             with_commas(batch.points), dropped_text(batch.dropped_points),
             with_commas(batch.voxels.size()), batch.voxelize_ms, totals.back(), where,
             arguments.precision);
  if (totals.size() > 1) {
    fmt::print("{} runs: median {:.1f} ms, {:.1f} to {:.1f}\n", totals.size(), median(totals),
               *std::min_element(totals.begin(), totals.end()),
               *std::max_element(totals.begin(), totals.end()));
  }
  if (captured) {
    const nn::CapturedNetwork::Graph graph = captured->graphs().front();
    fmt::print(
        "as a graph of {} nodes with room for {} voxels in {:.0f} MiB: {:.2f} ms on the "
        "device, {:.2f} to {:.2f}\n",
        graph.nodes, with_commas(graph.rows), static_cast<double>(graph.bytes) / (1 << 20),
        median(device_ms), *std::min_element(device_ms.begin(), device_ms.end()),
        *std::max_element(device_ms.begin(), device_ms.end()));
  }
  fmt::print("peak resident memory {:.0f} MiB\n", peak_mebibytes());
  if (arguments.weights.empty()) {
    fmt::print("weights: untrained, seed {}\n", arguments.seed);
  }
  if (!arguments.out.empty()) fmt::print("result written to {}\n", arguments.out);
  if (!arguments.picture.empty()) fmt::print("picture written to {}\n", arguments.picture);
}

std::string network_names() {
  std::string names;
  for (const nn::NetworkInfo& info : nn::networks()) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : "; ", info.name, info.description);
  }
  return names;
}

}   // namespace

void add_run_command(CLI::App& app) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command =
      app.add_subcommand("run", "Run a network over scans; several scans form one batch");
  command->add_option("NETWORK", arguments->network, network_names())->required();
  command->add_option("SCAN", arguments->scans, ".bin, .pcd.bin, .pcd, .ply, .npy or .npz files")
      ->required();
  arguments->reading.add_to(*command);
  arguments->voxels.add_to(*command);
  command->add_option(
      "--weights", arguments->weights,
      "safetensors file of any floating type; without it weights are random, named by "
      "--seed");
  command->add_option("--seed", arguments->seed, "Names the random weights")
      ->check(whole_number)
      ->capture_default_str();
  command
      ->add_option("--widths", arguments->widths,
                   "Channels of minkunet42: spvnas, driving, or nine numbers with commas")
      ->capture_default_str();
  command->add_option("--width-factor", arguments->width_factor, "Multiplies them")
      ->capture_default_str();
  add_precision(*command, arguments->precision,
                "f16 and bf16 store, sums are f32; tf32 stores f32 and multiplies tf32, on a CUDA "
                "device",
                true);
  command->add_option("--device", arguments->device, "cpu, cuda or cuda:1")->capture_default_str();
  command->add_flag("--graph", arguments->graph,
                    "On a CUDA device: record maps and layers once, then launch them as one graph");
  command->add_option(
      "--dataflow", arguments->dataflow,
      "gather_gemm_scatter, fetch_on_demand or implicit_gemm; default: plans decide");
  command->add_flag("--deterministic", arguments->deterministic,
                    "The same bits every time from fetch_on_demand on a CUDA device too; all else "
                    "gives them anyway");
  command->add_option("--repeat", arguments->repeat, "Runs; the table shows the last one")
      ->capture_default_str();
  command->add_option(
      "--out", arguments->out,
      "safetensors: coords [N, 4] (batch, x, y, z), features [N, C], point_to_voxel [P] of the "
      "finite points, scan after scan; with input_coords when the result is on coarser sites");
  command->add_option("--picture", arguments->picture,
                      "PNG of the first scan, coloured by its classes, or by height where the "
                      "result is on coarser sites");
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments] { run(*arguments); });
}

}   // namespace pumice::cli
