// Tables of plans that a command is given.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pumice/plan/plan_book.hpp>

namespace CLI {
class App;
}

namespace pumice::cli {

/// `--plans FILE`.
void add_plans(CLI::App& command, std::string& file);

/// As long as it lives, layers take their plans from the table in `file` and from no store; an
/// empty path changes nothing. UserError where it has no plan for `device` and this version.
class PlansOfFile {
 public:
  PlansOfFile(const std::string& file, const std::string& device);
  /// After the layers ran: a line on standard error where none of them took a plan.
  void say_if_unused() const;

 private:
  std::string file_;
  std::shared_ptr<const PlanBook> book_;
  std::optional<PlanBookScope> scope_;
};

}   // namespace pumice::cli
