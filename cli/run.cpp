// `pumice run`: a network over one or several scans, layer by layer.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/model_card.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/weights.hpp>

#include "agreement.hpp"
#include "arguments.hpp"
#include "commands.hpp"
#include "core/memory.hpp"
#include "core/printable.hpp"
#include "page.hpp"
#include "picture.hpp"
#include "picture_colours.hpp"
#include "run_batch.hpp"
#include "run_report.hpp"
#include "statistics.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct RunArguments {
  std::string network;
  std::vector<std::string> scans;
  std::vector<std::string> labels;
  ScanArguments reading;
  VoxelArguments voxels;
  std::string weights;
  std::string widths = "spvnas";
  bool widths_given = false;
  bool width_factor_given = false;
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
  std::string html;
  std::vector<int> size{1600, 900};   // of the picture
  bool sized = false;                 // --size was given
  bool json = false;

  Precision stored() const { return parse_precision(precision, parse_device(device)); }
  std::optional<Dataflow> wanted_dataflow() const {
    return dataflow.empty() ? std::nullopt : std::optional(parse_dataflow(dataflow));
  }
};

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

/// What the weights say of themselves; UserError where the command line says otherwise.
nn::ModelCard read_card(const RunArguments& arguments) {
  if (arguments.weights.empty()) {
    PUMICE_EXPECTS(arguments.labels.empty(),
                   "--labels are what the classes of trained weights are compared with, and there "
                   "are none; add --weights or leave it out");
    return {};
  }
  const SafetensorsFile file = SafetensorsFile::open(arguments.weights);
  nn::ModelCard card = nn::read_model_card(file);
  const std::string weights = "--weights " + file.name();
  const nn::NetworkInfo& info = nn::find_network(arguments.network);
  PUMICE_EXPECTS(card.network.empty() || card.network == info.name, weights, " are for ",
                 printable(card.network), ", not for ", info.name,
                 "; run that network, where it is one of `pumice run --help`");
  PUMICE_EXPECTS(card.in_channels.value_or(info.in_channels) == info.in_channels, weights, " take ",
                 *card.in_channels, " features of a point, and scans give ", info.in_channels,
                 " (x, y, z, intensity); run them from Python");
  if (card.widths) {
    PUMICE_EXPECTS(!arguments.width_factor_given, "--width-factor ", arguments.width_factor, ": ",
                   weights, " say their widths; leave it out");
    PUMICE_EXPECTS(!arguments.widths_given || nn::parse_widths(arguments.widths) == *card.widths,
                   "--widths ", arguments.widths, ": ", weights, " say others; leave it out");
  } else if (const auto widths = nn::widths_in(file); widths && info.takes_widths) {
    const auto asked =
        nn::scaled_widths(nn::parse_widths(arguments.widths), arguments.width_factor);
    PUMICE_EXPECTS(*widths == asked, weights,
                   " do not say their widths, and they are not those of the network; the shapes "
                   "fit ",
                   nn::options_for(*widths), ", so run with that");
  }
  PUMICE_EXPECTS(arguments.labels.empty() || !card.labels.empty(), "--labels: ", weights,
                 " do not say which labels their classes stand for; give their "
                 "metadata an entry \"labels\", or leave it out");
  return card;
}

/// What the network expects, where the weights say otherwise.
nn::NetworkInfo adapted(nn::NetworkInfo info, const nn::ModelCard& card) {
  if (!card.voxel_size || *card.voxel_size == info.voxel_size) return info;
  info.voxel_size = *card.voxel_size;
  info.spatial_shape.reset();   // counted in voxels of the other size
  return info;
}

std::shared_ptr<nn::Module> prepare_network(const RunArguments& arguments,
                                            const nn::ModelCard& card) {
  nn::NetworkOptions options;
  options.widths = card.widths.value_or(nn::parse_widths(arguments.widths));
  options.width_factor = arguments.width_factor;
  options.seed = arguments.seed;
  options.classes = card.outputs.value_or(options.classes);
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

void write_result(const std::string& path, const Forward& forward, const Batch& batch) {
  const Tensor features = forward.features.to(DType::f32);
  std::vector<std::pair<std::string, ConstTensorView>> tensors{
      {"coords", forward.coordinates},
      {"features", features},
      {"point_to_voxel", batch.voxels.point_to_voxel}};
  if (!forward.on_voxels()) tensors.emplace_back("input_coords", batch.voxels.coordinates);
  write_safetensors(path, tensors);
}

/// Picture and page of the first scan, whatever else is in the batch; `classes` of its points come
/// first.
void show(const RunArguments& arguments, const Batch& batch, std::span<const std::int32_t> classes,
          const nn::ModelCard& card, const std::optional<Agreement>& agreement) {
  const PointCloud& cloud = batch.clouds[0];
  if (!classes.empty()) classes = classes.first(static_cast<std::size_t>(cloud.size()));
  const ColourBy by = classes.empty() ? ColourBy::height : ColourBy::label;
  const std::string name = printable(std::filesystem::path(arguments.scans[0]).filename().string());
  const std::vector<ClassStyle> styles = class_styles(card);
  if (!arguments.picture.empty()) {
    PictureOptions options;
    options.width = arguments.size[0];
    options.height = arguments.size[1];
    options.by = by;
    options.styles = styles;
    options.caption = fmt::format("{} on {}: {} points, {} voxels", arguments.network, name,
                                  with_commas(cloud.size()), with_commas(first_voxels(batch)));
    if (batch.clouds.size() > 1)
      options.caption += fmt::format(" (first of {} scans)", batch.clouds.size());
    if (by == ColourBy::label && arguments.weights.empty())
      options.caption += ", untrained weights";
    if (agreement && batch.clouds.size() == 1)
      options.caption += fmt::format(", {:.1f} % right", 100 * agreement->accuracy());
    write_png(arguments.picture, render(cloud, classes, options));
  }
  if (!arguments.html.empty()) {
    PageOptions options;
    options.name = fmt::format("{} on {}", arguments.network, name);
    options.by = by;
    options.classes = classes;
    options.styles = styles;
    write_page(arguments.html, page(cloud, options));
  }
}

void run(const RunArguments& arguments) {
  std::vector<std::filesystem::path> inputs(arguments.scans.begin(), arguments.scans.end());
  inputs.insert(inputs.end(), arguments.labels.begin(), arguments.labels.end());
  inputs.emplace_back(arguments.weights);
  check_outputs(inputs, {arguments.out, arguments.picture, arguments.html});
  if (!arguments.picture.empty()) {
    check_ending("--picture", arguments.picture, ".png", "a picture");
  } else {
    PUMICE_EXPECTS(!arguments.sized,
                   "--size is that of a --picture, and none is asked for; leave it out");
  }
  if (!arguments.html.empty()) check_ending("--html", arguments.html, ".html", "a page");
  PUMICE_EXPECTS(arguments.repeat >= 1, "--repeat = ", arguments.repeat, ": ask for at least 1");
  const nn::ModelCard card = read_card(arguments);
  const nn::NetworkInfo info = adapted(nn::find_network(arguments.network), card);
  PUMICE_EXPECTS(info.takes_widths || (arguments.widths == "spvnas" && arguments.width_factor == 1),
                 "--widths and --width-factor change minkunet42; ", arguments.network,
                 " has one set of widths, so leave them out");
  const Device device = parse_device(arguments.device);
  (void)arguments.stored();   // refused before a device is looked for
  const Stream stream(device);
  const bool on_device = device.kind == DeviceKind::cuda;
  PUMICE_EXPECTS(!arguments.graph || on_device, "--graph records work for a CUDA device, and ",
                 to_string(device), " is none; add --device cuda");
  const auto network = prepare_network(arguments, card);
  if (on_device) network->to(stream);
  const Batch batch = read_batch(arguments.scans, arguments.labels, arguments.reading,
                                 arguments.voxels.options(info));
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
  std::vector<std::int32_t> classes;
  if (forward.on_voxels()) classes = point_classes(batch, forward.features);
  const std::optional<Agreement> agreement =
      classes.empty() ? std::nullopt : compare(card, classes, point_labels(batch));
  show(arguments, batch, classes, card, agreement);

  if (arguments.json) {
    print_json(nlohmann::ordered_json{
        {"network", arguments.network},
        {"scans", arguments.scans},
        {"points", batch.points},
        {"dropped_points", batch.dropped_points},
        {"voxels", batch.voxels.size()},
        {"rows_out", forward.features.rows()},
        {"channels_out", forward.features.extent(1)},
        {"device", to_string(device)},
        {"graph", captured ? to_json(*captured) : nlohmann::ordered_json(nullptr)},
        {"threads", threads()},
        {"precision", arguments.precision},
        {"trained", !arguments.weights.empty()},
        {"voxelize_ms", batch.voxelize_ms},
        {"map_ms", forward.profile.map_ms()},
        {"total_ms", totals},
        {"device_ms", device_ms},
        {"gflop", forward.profile.gflop()},
        {"peak_mib", peak_mebibytes()},
        {"agreement", agreement ? to_json(*agreement) : nlohmann::ordered_json(nullptr)},
        {"layers", to_json(forward.profile)}});
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
  if (agreement) {
    fmt::print("\nagreement with the labels of the scan{}:\n\n{}\n",
               batch.clouds.size() == 1 ? "" : "s", agreement_table(*agreement));
  }
  if (!arguments.out.empty()) fmt::print("result written to {}\n", printable_path(arguments.out));
  if (!arguments.picture.empty())
    fmt::print("picture written to {}\n", printable_path(arguments.picture));
  if (!arguments.html.empty()) fmt::print("page written to {}\n", printable_path(arguments.html));
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
      "safetensors file of any floating type, whose metadata may say widths, voxel size and "
      "classes, or streets, which comes along; without it weights are random, named by --seed");
  command->add_option("--labels", arguments->labels,
                      "SemanticKITTI .label files, one a scan: says how well the classes of the "
                      "weights agree with them (default: with the labels in the scans)");
  command->add_option("--seed", arguments->seed, "Names the random weights")
      ->check(whole_number)
      ->capture_default_str();
  const CLI::Option* widths =
      command
          ->add_option("--widths", arguments->widths,
                       "Channels of minkunet42: spvnas, driving, or nine numbers with commas")
          ->capture_default_str();
  const CLI::Option* factor =
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
  command->add_option("--html", arguments->html,
                      "A page that shows the same in a browser, as `pumice view --html` makes it");
  const CLI::Option* size =
      command->add_option("--size", arguments->size, "Width and height of the picture in pixels")
          ->expected(2)
          ->capture_default_str();
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, widths, factor, size] {
    arguments->weights = nn::find_weights(arguments->weights);
    arguments->sized = size->count() > 0;
    arguments->widths_given = widths->count() > 0;
    arguments->width_factor_given = factor->count() > 0;
    run(*arguments);
  });
}

}   // namespace pumice::cli
