// What a plan in a store may be, and which of several is the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pumice/plan/store.hpp>

namespace pumice::tune {

/// Why this is no plan, in a sentence with the field's name; empty where it is one.
std::string problem_of(const PlanKey& key);
std::string problem_of(const PlanRecord& record);

/// Whether two keys agree in everything but the buckets.
bool agree(const PlanKey& a, const PlanKey& b);

/// The rule of PlanStore::find, among `plans` whose texts agree with `key`'s.
std::optional<StoredPlan> nearest(const PlanKey& key, const std::vector<StoredPlan>& plans);

/// By texts, then by buckets.
bool comes_before(const PlanKey& a, const PlanKey& b);

/// Milliseconds of UTC since 1970.
std::int64_t now_ms();
/// Later than any clock that is not wrong.
std::int64_t far_future_ms();

}   // namespace pumice::tune
