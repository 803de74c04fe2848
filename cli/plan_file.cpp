// A book made of a table, and the sentence for a table of another machine.
#include "plan_file.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/App.hpp>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {

void add_plans(CLI::App& command, std::string& file) {
  command.add_option(
      "--plans", file,
      "Table of plans (JSON), as `pumice tune --out` and `pumice plans export` write "
      "it: taken in place of those that this machine keeps");
}

PlansOfFile::PlansOfFile(const std::string& file, const std::string& device) : file_(file) {
  if (file.empty()) return;
  const std::vector<tune::StoredPlan> plans = read_plans(file);
  const Target& target = target_of(parse_device(device));
  std::set<std::string> measured_for;
  for (const tune::StoredPlan& plan : plans)
    measured_for.insert(printable(plan.key.device) + " by version " + printable(plan.key.version));
  const bool has_some = std::any_of(plans.begin(), plans.end(), [&](const auto& plan) {
    return was_measured_for(plan.key, target);
  });
  PUMICE_EXPECTS(has_some, "--plans ", printable_path(file), " has no plan for ",
                 machine_of(target), " by version " PUMICE_VERSION,
                 measured_for.empty() ? std::string(", but is empty")
                                      : fmt::format(", but for {}", fmt::join(measured_for, ", ")),
                 "; tune the network here with `pumice tune --out`");
  book_ = std::make_shared<const PlanBook>(PlanBook::of(plans));
  scope_.emplace(book_);
}

void PlansOfFile::say_if_unused() const {
  if (book_ == nullptr || book_->was_of_use()) return;
  fmt::print(stderr,
             "pumice: --plans {}: none of its {} is of a layer that ran (channels, precision, "
             "direction, rows within a factor of 4); tune this network with `pumice tune --out`\n",
             printable_path(file_), counted(static_cast<long long>(book_->size()), "plan"));
}

}   // namespace pumice::cli
