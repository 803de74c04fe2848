// Plans for tests of the store.
#pragma once

#include <string>

#include <pumice/plan/store.hpp>

namespace pumice::test {

inline tune::PlanKey key_of(const std::string& problem, int rows_bucket = 33) {
  return {.device = "NVIDIA H200",
          .version = "0.1.0",
          .operation = "convolution",
          .direction = "forward",
          .problem = problem,
          .rows_bucket = rows_bucket};
}

inline tune::PlanRecord record_of(const std::string& plan, std::int64_t measured_ms = 1000) {
  return {.plan = plan,
          .tuned_s = 0.8e-3,
          .untuned_s = 1e-3,
          .confidence = 0.99,
          .samples = 40,
          .measured_ms = measured_ms};
}

/// A store whose file is the user's own, or at its default place.
inline tune::PlanStore::Places named(const std::filesystem::path& file) {
  return {.database = file, .is_default = false, .shipped_folders = {}};
}
inline tune::PlanStore::Places by_default(const std::filesystem::path& file) {
  return {.database = file, .is_default = true, .shipped_folders = {}};
}

/// The plan that is found, or "none".
inline std::string plan_in(tune::PlanStore& store, const tune::PlanKey& key) {
  const auto found = store.find(key);
  return found ? found->record.plan : "none";
}

}   // namespace pumice::test
