// `pumice explain`: what could run in place of each layer, and why it does not.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "plan_file.hpp"
#include "tuned_network.hpp"

namespace pumice::cli {
namespace {

struct ExplainArguments {
  RunArguments network;
  bool training = false;
  bool measures = false;
};

void explain(const ExplainArguments& arguments) {
  const PlansOfFile plans(arguments.network.plans, arguments.network.device);
  TunedNetwork network(arguments.network,
                       arguments.training ? NetworkMode::training : NetworkMode::inference);
  const std::vector<ExplainedLayer> layers = explain_network(network.passes(), arguments.measures);
  plans.say_if_unused();
  if (arguments.network.json)
    return print_json({{"network", arguments.network.network},
                       {"layers", nlohmann::ordered_json::parse(to_json(layers))}});
  fmt::print("{} {}, {}\n\n{}", arguments.network.network, arguments.network.precision,
             arguments.network.where(), to_text(layers));
}

}   // namespace

void add_explain_command(CLI::App& app) {
  const auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand(
      "explain", "Print what could run in place of each layer of a network, with its cost");
  const NetworkOptions network = add_tuned_network(*command, arguments->network);
  command->add_flag("--training", arguments->training,
                    "Forward and backward passes of training steps");
  add_plans(*command, arguments->network.plans);
  command->add_flag("--measure", arguments->measures, "Time every candidate");
  command->callback([arguments, network] {
    network.finish(arguments->network);
    explain(*arguments);
  });
}

}   // namespace pumice::cli
