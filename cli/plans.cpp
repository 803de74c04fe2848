// `pumice plans`: what tuning has stored, and tables of it for other machines of the kind.
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/plan/plan_book.hpp>
#include <pumice/plan/store.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "outputs.hpp"
#include "plan_file.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

using tune::PlanStore;
using tune::StoredPlan;

struct PlansArguments {
  std::string file;
  bool json = false;
};

std::string place_of(const PlanStore& store) {
  return store.database().empty() ? "nowhere (PUMICE_PLANS says off, or there is no folder)"
                                  : printable_path(store.database());
}

/// A text that is no plan is shown as it is.
std::string shown_plan(const StoredPlan& plan) {
  try {
    return name_of_plan(plan);
  } catch (const UserError&) {
    return printable(plan.record.plan, 60);
  }
}

std::string words_of_rows(int bucket) {
  return with_commas(std::llround(std::exp2(bucket / 2.0)));   // of half octaves
}

/// Pairs, or entries, of a row; nothing where they are not known, as on a device.
std::string words_of_density(const std::optional<int>& bucket) {
  return bucket ? fmt::format("{:.2g}", std::exp2(*bucket / 2.0)) : std::string();
}

void list_plans(const PlansArguments& arguments) {
  PlanStore& store = tune::process_plans();
  const std::vector<StoredPlan> plans = store.list();
  if (arguments.json) {
    auto all = nlohmann::ordered_json::array();
    for (const StoredPlan& plan : plans) {
      all.push_back({{"device", plan.key.device},
                     {"version", plan.key.version},
                     {"problem", plan.key.problem},
                     {"rows_bucket", plan.key.rows_bucket},
                     {"density_bucket", plan.key.density_bucket
                                            ? nlohmann::ordered_json(*plan.key.density_bucket)
                                            : nlohmann::ordered_json(nullptr)},
                     {"plan", plan.record.plan},
                     {"ratio", plan.record.tuned_s / plan.record.untuned_s},
                     {"is_shipped", plan.is_shipped}});
    }
    return print_json(
        nlohmann::ordered_json{{"database", store.database().string()}, {"plans", std::move(all)}});
  }
  const Table empty({"<problem", "rows, about", "pairs a row", "<plan", "time"});
  Table table = empty;
  std::string device;
  const auto print = [&] {
    if (!device.empty()) fmt::print("{}\n{}\n", device, table.text());
    table = empty;
  };
  for (const StoredPlan& plan : plans) {
    const std::string of = printable(plan.key.device) + ", version " + printable(plan.key.version) +
                           (plan.is_shipped ? ", part of this release" : "");
    if (of != device) {
      print();
      device = of;
    }
    table.add({printable(plan.key.problem), words_of_rows(plan.key.rows_bucket),
               words_of_density(plan.key.density_bucket), shown_plan(plan),
               fmt::format("{:.3f}", plan.record.tuned_s / plan.record.untuned_s)});
  }
  print();
  fmt::print("{} in {}; \"time\" is that of the tuned layers on a map, in parts of the untuned\n",
             counted(std::ssize(plans), "plan"), place_of(store));
}

void export_plans(const PlansArguments& arguments) {
  check_outputs({}, {{"FILE", arguments.file, Format::plans}});
  const std::int64_t count = tune::process_plans().export_to(arguments.file);
  fmt::print("{} written to {}\n", counted(count, "plan"), printable_path(arguments.file));
}

void import_plans(const PlansArguments& arguments) {
  PlanStore& store = tune::process_plans();
  const tune::Merge merge = store.merge(read_plans(arguments.file));
  fmt::print("{} added and {} replaced in {}; {} were there, measured then or later{}\n",
             counted(merge.added, "plan"), merge.replaced, place_of(store), merge.outdated,
             merge.skipped == 0
                 ? std::string()
                 : fmt::format("; {} left out, whose date is in the future", merge.skipped));
}

void clear_plans() {
  const std::int64_t erased = tune::process_plans().erase_other_versions(PUMICE_VERSION);
  fmt::print("{} of other versions removed\n", counted(erased, "plan"));
}

}   // namespace

void add_plans_command(CLI::App& app) {
  CLI::App* plans = app.add_subcommand("plans", "List, export and import what tuning has stored");
  plans->require_subcommand(1);
  const auto arguments = std::make_shared<PlansArguments>();

  CLI::App* listing = plans->add_subcommand("list", "Every stored plan, by device");
  add_json(*listing, arguments->json);
  listing->callback([arguments] { list_plans(*arguments); });

  CLI::App* exporting =
      plans->add_subcommand("export", "Write this machine's plans as a table (JSON)");
  exporting->add_option("FILE", arguments->file, "A new .json file")->required();
  exporting->callback([arguments] { export_plans(*arguments); });

  CLI::App* importing = plans->add_subcommand(
      "import", "Take in a table; of two plans for one layer, that measured later stays");
  importing->add_option("FILE", arguments->file, "What export or `pumice tune --out` has written")
      ->required();
  importing->callback([arguments] { import_plans(*arguments); });

  plans->add_subcommand("clear", "Remove plans of other versions of Pumice")->callback([] {
    clear_plans();
  });
}

}   // namespace pumice::cli
