// The whole network, tuned beside untuned.
#pragma once

#include <vector>

#include <pumice/plan/tuner.hpp>

#include "plan/tune/sampler.hpp"

namespace pumice::tune {

/// Keeps of the groups in which `tuned` differs the largest number with which the network is faster
/// than untuned; groups whose gain is least certain go first. `result` gets the assignment, the
/// comparison from end to end, and a sentence in the report of every group that is dropped.
void check_network(Sampler& sampler, const std::vector<Group>& groups, const Assignment& tuned,
                   const Options& options, Result& result);

}   // namespace pumice::tune
