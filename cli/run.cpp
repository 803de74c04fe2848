// `pumice run`: a network over a scan, a batch of scans, or a folder of them.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/App.hpp>

#include <pumice/core/error.hpp>

#include "commands.hpp"
#include "core/printable.hpp"
#include "outputs.hpp"
#include "plan_file.hpp"
#include "run_arguments.hpp"
#include "run_batch.hpp"
#include "run_folder.hpp"
#include "run_network.hpp"
#include "run_report.hpp"
#include "run_results.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

void check_results(const RunArguments& arguments) {
  std::vector<std::filesystem::path> inputs(arguments.scans.begin(), arguments.scans.end());
  inputs.insert(inputs.end(), arguments.labels.begin(), arguments.labels.end());
  inputs.emplace_back(arguments.weights);
  const RunResults& where = arguments.results;
  check_outputs(inputs, {{"--out", where.out, Format::tensors},
                         {"--classes", where.classes, Format::labels},
                         {"--picture", where.picture, Format::picture},
                         {"--html", where.html, Format::page}});
  PUMICE_EXPECTS(where.classes.empty() || arguments.scans.size() == 1, "--classes ",
                 printable_path(where.classes),
                 ": a .label file is that of one scan, and there are ", arguments.scans.size(),
                 "; give one scan, or a folder of them");
}

/// All scans side by side, in one pass.
void run_batch(const RunArguments& arguments) {
  check_results(arguments);
  const nn::ModelCard card = read_card(arguments);
  const nn::NetworkInfo info = network_info(arguments, card);
  NetworkRun network(arguments, card, info);
  const Batch batch = read_batch(arguments.scans, arguments.labels, arguments.reading,
                                 arguments.voxels.options(info));
  const auto forward_with_bar = [&](bool profiled) {
    ProgressBar bar(arguments.network);
    return network.forward(batch, profiled, [&](int done, int count) { bar.show(done, count); });
  };
  if (network.captured() != nullptr) (void)network.forward(batch, false);   // learns and records
  RunTimes times;
  Forward forward;
  for (int i = 0; i < arguments.repeat; ++i) {
    forward = Forward{};   // let the previous result go before the next one is made
    forward = forward_with_bar(!network.on_device());
    times.total_ms.push_back(forward.total_ms);
  }
  if (network.captured() != nullptr) times.device_ms = network.device_times(batch);
  // Waiting for each layer takes longer than all of them, so their times come from a run of their
  // own.
  if (network.on_device()) forward.profile = forward_with_bar(true).profile;
  const Answer answer = answer_of(batch, forward, card);
  const std::string name = printable(std::filesystem::path(arguments.scans[0]).filename().string());
  write_results(arguments, arguments.results, name, batch, forward, answer, card);
  if (arguments.json) {
    print_json(arguments, batch, forward, times, answer.agreement, network.captured());
  } else {
    print_words(arguments, batch, forward, times, answer.agreement, network.captured());
  }
}

void run(const RunArguments& arguments) {
  check_options(arguments);
  const PlansOfFile plans(arguments.plans, arguments.device);
  if (names_a_folder(arguments)) {
    run_folder(arguments);
  } else {
    run_batch(arguments);
  }
  plans.say_if_unused();
}

}   // namespace

void add_run_command(CLI::App& app) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Run a network over a scan, several as one batch, or each scan of a folder");
  const NetworkOptions network = add_network_options(*command, *arguments);
  command
      ->add_option("SCAN", arguments->scans,
                   ".bin, .pcd.bin, .pcd, .ply, .npy or .npz files, which form one batch, or one "
                   "folder of them, each of which is run on its own: --labels, --out, --classes, "
                   "--picture and --html are folders then")
      ->required();
  command->add_option(
      "--labels", arguments->labels,
      "SemanticKITTI .label files, one for each scan, to compare the result with "
      "(default: the labels in the scans); in a folder they are named as the scans are");
  command->add_flag("--graph", arguments->graph,
                    "On a CUDA device: record maps and layers once, then launch them as one graph");
  command->add_option(
      "--dataflow", arguments->dataflow,
      "gather_gemm_scatter, fetch_on_demand or implicit_gemm; default: plans decide");
  add_plans(*command, arguments->plans);
  command->add_option("--repeat", arguments->repeat, "Runs; the table shows the last one")
      ->capture_default_str();
  RunResults& results = arguments->results;
  command->add_option(
      "--out", results.out,
      "safetensors: coords [N, 4] (batch, x, y, z), features [N, C], point_to_voxel [P] of the "
      "finite points, scan after scan; with input_coords when the result is on coarser sites");
  command->add_option("--classes", results.classes,
                      "SemanticKITTI .label file of the classes that the network finds");
  command->add_option("--picture", results.picture,
                      "PNG of the first scan, coloured by its classes, or by height where the "
                      "result is on coarser sites");
  command->add_option("--html", results.html,
                      "A page that shows the same in a browser, as `pumice view --html` makes it, "
                      "and beside labels the truth and the errors");
  arguments->size.add_to(*command);
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, network] {
    network.finish(*arguments);
    run(*arguments);
  });
}

}   // namespace pumice::cli
