// From what a tuning has found to what is kept of it.
#pragma once

#include <vector>

#include <pumice/plan/store.hpp>
#include <pumice/plan/tuner.hpp>

#include "ops/tune/network_groups.hpp"
#include "ops/tune/recorded_passes.hpp"

namespace pumice {

/// A plan for each key of all scans whose group was measured: the chosen one, or without a gain the
/// untuned one, in place of one that was measured before. `confidence` is that of a gain.
std::vector<tune::StoredPlan> plans_to_store(const RecordedPasses& recorded,
                                             const NetworkGroups& network,
                                             const tune::Result& result, const Target& target,
                                             double confidence);

}   // namespace pumice
