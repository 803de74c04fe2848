// Buckets, checks, and the order in which plans answer.
#include "plan/store/plan_rules.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"

namespace pumice::tune {
namespace {

constexpr int kMostDistance = 4;      // half octaves: a factor of 4
constexpr int kUnknownDensity = 2;    // so far away is a plan whose density nobody knew
constexpr int kLargestBucket = 200;   // more than any number of rows has
constexpr int kLeastDensity = -8;
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostPlan = 65536;

int half_octaves(double number) {
  return static_cast<int>(std::lround(2 * std::log2(number)));
}

/// Text that every table and terminal can show as it is.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char letter) { return letter >= ' ' && letter <= '~'; });
}

std::string problem_of_text(const char* name, const std::string& text, std::size_t most) {
  if (text.empty()) return detail::concatenate(name, " is empty; give a text");
  if (text.size() > most)
    return detail::concatenate(name, " has ", text.size(), " letters; give at most ", most);
  if (is_plain(text)) return {};
  return detail::concatenate(name, " = \"", printable(text), "\": give printable ASCII");
}

std::string problem_of_seconds(const char* name, double seconds) {
  if (std::isfinite(seconds) && seconds > 0) return {};
  return detail::concatenate(name, " = ", seconds, ": give a positive number of seconds");
}

}   // namespace

int rows_bucket(std::int64_t rows) {
  return rows <= 1 ? 0 : half_octaves(static_cast<double>(rows));
}

int density_bucket(double pairs_per_row) {
  PUMICE_EXPECTS(!std::isnan(pairs_per_row) && pairs_per_row < 1e9,
                 "pairs_per_row = ", pairs_per_row,
                 ": give the mean number of pairs of an output row");
  return pairs_per_row <= 0 ? kLeastDensity : std::max(half_octaves(pairs_per_row), kLeastDensity);
}

std::string problem_of(const PlanKey& key) {
  const std::pair<const char*, const std::string*> texts[] = {{"device", &key.device},
                                                              {"version", &key.version},
                                                              {"operation", &key.operation},
                                                              {"direction", &key.direction},
                                                              {"problem", &key.problem}};
  for (const auto& [name, text] : texts) {
    if (std::string problem = problem_of_text(name, *text, kMostText); !problem.empty())
      return problem;
  }
  if (key.rows_bucket < 0 || key.rows_bucket > kLargestBucket)
    return detail::concatenate("rows_bucket = ", key.rows_bucket,
                               ": take what rows_bucket() gives");
  const int density = key.density_bucket.value_or(0);
  if (density < kLeastDensity || density > kLargestBucket)
    return detail::concatenate("density_bucket = ", density, ": take what density_bucket() gives");
  return {};
}

std::string problem_of(const PlanRecord& record) {
  if (std::string problem = problem_of_text("plan", record.plan, kMostPlan); !problem.empty())
    return problem;
  if (std::string problem = problem_of_seconds("tuned_s", record.tuned_s); !problem.empty())
    return problem;
  if (std::string problem = problem_of_seconds("untuned_s", record.untuned_s); !problem.empty())
    return problem;
  if (!(record.confidence >= 0 && record.confidence <= 1))
    return detail::concatenate("confidence = ", record.confidence, ": it lies between 0 and 1");
  if (record.samples < 0)
    return detail::concatenate("samples = ", record.samples, ": it is a number of samples");
  // Year 9999 ends there: no date with four digits is later.
  if (record.measured_ms < 0 || record.measured_ms > 253'402'300'799'999)
    return detail::concatenate("measured_ms = ", record.measured_ms,
                               ": give milliseconds since 1970");
  return {};
}

bool agree(const PlanKey& a, const PlanKey& b) {
  return a.device == b.device && a.version == b.version && a.operation == b.operation &&
         a.direction == b.direction && a.problem == b.problem;
}

std::optional<StoredPlan> nearest(const PlanKey& key, const std::vector<StoredPlan>& plans) {
  using Rank = std::tuple<int, bool, int, std::int64_t, std::string_view>;
  std::optional<Rank> best_rank;
  const StoredPlan* best = nullptr;
  for (const StoredPlan& plan : plans) {
    const int rows = std::abs(plan.key.rows_bucket - key.rows_bucket);
    int density = key.density_bucket ? kUnknownDensity : 0;
    if (plan.key.density_bucket) {
      density = key.density_bucket ? std::abs(*plan.key.density_bucket - *key.density_bucket) : 1;
    }
    if (rows > kMostDistance || density > kMostDistance) continue;
    const Rank rank{rows, plan.key.rows_bucket < key.rows_bucket, density, -plan.record.measured_ms,
                    plan.record.plan};
    if (best_rank && *best_rank <= rank) continue;
    best_rank = rank;
    best = &plan;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

bool comes_before(const PlanKey& a, const PlanKey& b) {
  const auto all = [](const PlanKey& key) {
    return std::tie(key.device, key.version, key.operation, key.direction, key.problem,
                    key.rows_bucket, key.density_bucket);
  };
  return all(a) < all(b);
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::int64_t far_future_ms() {
  constexpr std::int64_t kDay_ms = 86'400'000;
  return now_ms() + kDay_ms;
}

}   // namespace pumice::tune
