// `pumice explain`: what could run in place of each layer, or of a product of a sparse matrix, and
// why it does not.
#include <memory>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/plan/choose_sparse.hpp>

#include "commands.hpp"
#include "plan_file.hpp"
#include "sparse_passes.hpp"
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
  const ExplainedNetwork layers = explain_network(network.passes(), arguments.measures);
  plans.say_if_unused();
  if (arguments.network.json)
    return print_json({{"network", arguments.network.network},
                       {"layers", nlohmann::ordered_json::parse(to_json(layers))}});
  fmt::print("{} {}, {}\n\n{}", arguments.network.network, arguments.network.precision,
             arguments.network.where(), to_text(layers));
}

struct ExplainSparseArguments {
  SparsePassArguments product;
  std::string plans;
  bool measures = false;
};

void explain_sparse(const ExplainSparseArguments& arguments) {
  const PlansOfFile plans(arguments.plans, arguments.product.device);
  SparsePasses product(arguments.product);
  const ExplainedNetwork found = explain_network(product.passes(), arguments.measures);
  plans.say_if_unused();
  if (arguments.product.json)
    return print_json({{"matrix", arguments.product.matrix},
                       {"products", nlohmann::ordered_json::parse(to_json(found))}});
  fmt::print("{}\n\n", product.title());
  const Target& target = target_of(parse_device(arguments.product.device));
  for (const ExplainedProduct& one : found.products)
    fmt::print("{}\n", pumice::explain(one.problem, target, *one.plan));
  if (arguments.measures) fmt::print("{}", to_text(found));
}

void add_sparse(CLI::App& above) {
  const auto arguments = std::make_shared<ExplainSparseArguments>();
  CLI::App* command = above.add_subcommand(
      "sparse", "Print what could run in place of a product of a sparse matrix, and why not");
  add_sparse_pass(*command, arguments->product);
  add_plans(*command, arguments->plans);
  command->add_flag("--measure", arguments->measures, "Time every candidate");
  command->callback([arguments] { explain_sparse(*arguments); });
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
  add_sparse(*command);
  command->callback([arguments, network, command] {
    if (!command->get_subcommands().empty()) return;   // which has explained
    expect_positionals(*command);
    network.finish(arguments->network);
    explain(*arguments);
  });
}

}   // namespace pumice::cli
