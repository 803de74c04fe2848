// What a network runs over each of its scans.
#pragma once

#include <vector>

#include <pumice/ops/tune_network.hpp>

namespace pumice {

struct RecordedPasses {   // of each scan, in the order of the calls
  std::vector<std::vector<OperatorCall>> calls;
  std::vector<std::vector<SparseCall>> sparse;
};

/// The calls of a pass over each scan, with plans by rules. UserError where there are no scans or
/// no calls, and where scans differ in more than their sizes.
RecordedPasses recorded_passes(const NetworkPasses& passes);

}   // namespace pumice
