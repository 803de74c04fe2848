// Tables of plans as JSON: what is exported, merged, and shipped with the library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <pumice/plan/store.hpp>

namespace pumice::tune {

/// "2025-11-24T13:46:25.123Z"
std::string utc_text(std::int64_t unix_ms);

void write_plan_table(const std::filesystem::path& file, const std::vector<StoredPlan>& plans);

/// UserError that names file, entry and field where it is no table of plans.
std::vector<StoredPlan> read_plan_table(const std::filesystem::path& file);

}   // namespace pumice::tune
