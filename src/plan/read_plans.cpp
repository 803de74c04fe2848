// Tables whose plans somebody can run: texts are parsed before anything takes a table in.
#include <cstddef>

#include <pumice/core/error.hpp>
#include <pumice/plan/plan_book.hpp>

#include "core/printable.hpp"

namespace pumice {

std::vector<tune::StoredPlan> read_plans(const std::filesystem::path& file) {
  std::vector<tune::StoredPlan> plans = tune::read_plan_table(file);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].key.version != PUMICE_VERSION) continue;   // other versions have other kernels
    try {
      (void)name_of_plan(plans[i]);
    } catch (const UserError& error) {
      detail::raise_user(printable_path(file), ": plan ", i + 1, ": ", error.what());
    }
  }
  return plans;
}

}   // namespace pumice
