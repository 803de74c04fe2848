// `pumice tune`: measures what could run in place of each layer, or of a product of a sparse
// matrix, and keeps the winners.
#include <memory>
#include <optional>
#include <string>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "commands.hpp"
#include "core/printable.hpp"
#include "interrupted.hpp"
#include "outputs.hpp"
#include "sparse_passes.hpp"
#include "terminal.hpp"
#include "tuned_network.hpp"

namespace pumice::cli {
namespace {

/// What tuning asks, whatever it tunes.
struct TuningArguments {
  bool keeps_nothing = false;
  std::optional<double> budget_s;
  std::string out;
};

struct TuneArguments {
  RunArguments network;
  bool training = false;
  TuningArguments tuning;
};

struct TuneSparseArguments {
  SparsePassArguments product;
  TuningArguments tuning;
};

void print(const std::string& title, const NetworkTuning& tuning) {
  fmt::print("{}\n\n{}", title, tuning.to_text());
  if (tuning.stored > 0) {
    fmt::print("They are in {}, and every later run on this machine uses them.\n",
               printable_path(tune::process_plans().database()));
  }
}

/// Before anything is read.
tune::Options checked_options(const TuningArguments& arguments, const std::string& device,
                              const std::string& input) {
  tune::Options options;
  options.budget_s = arguments.budget_s.value_or(usual_budget_s(parse_device(device)));
  PUMICE_EXPECTS(options.budget_s > 0, "--budget-s ", options.budget_s,
                 ": give the seconds that measuring may take, as 60");
  check_outputs({input}, {{"--out", arguments.out, Format::plans}});
  return options;
}

void tune_passes(const NetworkPasses& passes, const TuningArguments& arguments,
                 tune::Options options, const std::string& title, bool json) {
  NetworkTuning tuning;
  {
    const SaysAtInterrupt stopped(
        "stopped, and nothing that was measured is kept; a smaller --budget-s ends with the plans "
        "found until then");
    ProgressBar bar("tuning");
    options.progress = [&](double fraction, const std::string&) { bar.show(0, 1, fraction); };
    tuning = pumice::tune_network(passes, options,
                                  arguments.keeps_nothing ? nullptr : &tune::process_plans());
  }
  if (!arguments.out.empty() && !tuning.plans.empty())
    tune::write_plan_table(arguments.out, tuning.plans);
  if (json) {
    print_json(nlohmann::ordered_json::parse(tuning.to_json()));
  } else {
    print(title, tuning);
  }
  PUMICE_EXPECTS(arguments.out.empty() || !tuning.plans.empty(), "--out ",
                 printable_path(arguments.out), ": nothing was measured to the end in ",
                 options.budget_s, " s, so no table was written; give a larger --budget-s");
}

void tune_network(const TuneArguments& arguments) {
  const RunArguments& of = arguments.network;
  const tune::Options options = checked_options(arguments.tuning, of.device, of.weights);
  TunedNetwork network(of, arguments.training ? NetworkMode::training : NetworkMode::inference);
  tune_passes(network.passes(), arguments.tuning, options,
              fmt::format("{} {} {}, {}", of.network, of.precision,
                          arguments.training ? "training steps" : "inference", of.where()),
              of.json);
}

void tune_sparse(const TuneSparseArguments& arguments) {
  const tune::Options options =
      checked_options(arguments.tuning, arguments.product.device, arguments.product.matrix);
  SparsePasses product(arguments.product);
  tune_passes(product.passes(), arguments.tuning, options, product.title(), arguments.product.json);
}

void add_tuning(CLI::App& command, TuningArguments& arguments) {
  command.add_option(
      "--budget-s", arguments.budget_s,
      "Seconds that measuring may take (default: 60 on a device, 300 on the CPU); what was found "
      "until then counts");
  command.add_option(
      "--out", arguments.out,
      "Also write the plans as a table (JSON), for --plans and `pumice plans import`");
  command.add_flag("--no-store", arguments.keeps_nothing, "Report, and keep nothing");
}

void add_sparse(CLI::App& above) {
  const auto arguments = std::make_shared<TuneSparseArguments>();
  CLI::App* command = above.add_subcommand(
      "sparse", "Measure what could run in place of a product of a sparse matrix");
  add_sparse_pass(*command, arguments->product);
  add_tuning(*command, arguments->tuning);
  command->callback([arguments] { tune_sparse(*arguments); });
}

}   // namespace

void add_tune_command(CLI::App& app) {
  const auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand(
      "tune", "Measure what could run in place of each layer of a network, and keep the fastest");
  const NetworkOptions network = add_tuned_network(*command, arguments->network);
  command->add_flag("--training", arguments->training,
                    "Tune forward and backward passes of training steps");
  command->add_flag("--graph", arguments->network.graph,
                    "On a CUDA device: compare the network as a graph, not layer by layer");
  add_tuning(*command, arguments->tuning);
  add_sparse(*command);
  command->callback([arguments, network, command] {
    if (!command->get_subcommands().empty()) return;   // which has tuned
    expect_positionals(*command);
    network.finish(arguments->network);
    tune_network(*arguments);
  });
}

}   // namespace pumice::cli
