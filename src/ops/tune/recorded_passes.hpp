// What a network runs over each of its scans.
#pragma once

#include <vector>

#include <pumice/ops/tune_network.hpp>

namespace pumice {

/// The calls of a pass over each scan, with plans by rules. UserError where there are no scans or
/// no calls, and where scans differ in more than their sizes.
std::vector<std::vector<OperatorCall>> recorded_passes(const NetworkPasses& passes);

}   // namespace pumice
