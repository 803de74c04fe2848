// `pumice tune`: measures what could run in place of each layer, and keeps the winners.
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "commands.hpp"
#include "core/printable.hpp"
#include "interrupted.hpp"
#include "outputs.hpp"
#include "terminal.hpp"
#include "tuned_network.hpp"

namespace pumice::cli {
namespace {

struct TuneArguments {
  RunArguments network;
  bool training = false;
  bool keeps_nothing = false;
  std::optional<double> budget_s;
  std::string out;
};

void print(const TuneArguments& arguments, const NetworkTuning& tuning) {
  if (arguments.network.json) return print_json(nlohmann::ordered_json::parse(tuning.to_json()));
  fmt::print("{} {} {}, {}\n\n{}", arguments.network.network, arguments.network.precision,
             arguments.training ? "training steps" : "inference", arguments.network.where(),
             tuning.to_text());
  if (tuning.stored > 0) {
    fmt::print("They are in {}, and every later run on this machine uses them.\n",
               printable_path(tune::process_plans().database()));
  }
}

void tune_network(const TuneArguments& arguments) {
  tune::Options options;
  options.budget_s =
      arguments.budget_s.value_or(usual_budget_s(parse_device(arguments.network.device)));
  PUMICE_EXPECTS(options.budget_s > 0, "--budget-s ", options.budget_s,
                 ": give the seconds that measuring may take, as 60");
  check_outputs({arguments.network.weights}, {{"--out", arguments.out, Format::plans}});
  TunedNetwork network(arguments.network,
                       arguments.training ? NetworkMode::training : NetworkMode::inference);
  NetworkTuning tuning;
  {
    const SaysAtInterrupt stopped(
        "stopped, and nothing that was measured is kept; a smaller --budget-s ends with the plans "
        "found until then");
    ProgressBar bar("tuning");
    options.progress = [&](double fraction, const std::string&) { bar.show(0, 1, fraction); };
    tuning = pumice::tune_network(network.passes(), options,
                                  arguments.keeps_nothing ? nullptr : &tune::process_plans());
  }
  if (!arguments.out.empty() && !tuning.plans.empty())
    tune::write_plan_table(arguments.out, tuning.plans);
  print(arguments, tuning);
  PUMICE_EXPECTS(arguments.out.empty() || !tuning.plans.empty(), "--out ",
                 printable_path(arguments.out), ": nothing was measured to the end in ",
                 options.budget_s, " s, so no table was written; give a larger --budget-s");
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
  command->add_option(
      "--budget-s", arguments->budget_s,
      "Seconds that measuring may take (default: 60 on a device, 300 on the CPU); what was found "
      "until then counts");
  command->add_option(
      "--out", arguments->out,
      "Also write the plans as a table (JSON), for --plans and `pumice plans import`");
  command->add_flag("--no-store", arguments->keeps_nothing, "Report, and keep nothing");
  command->callback([arguments, network] {
    network.finish(arguments->network);
    tune_network(*arguments);
  });
}

}   // namespace pumice::cli
