// How long a weight gradient is predicted to take, from constants that were fitted to measured
// kernels.
#pragma once

#include <cstdint>

#include "plan/space/gradient_table.hpp"

namespace pumice::cuda {

/// Pairs of an output in scans, 4 to 16 of 27, which a host does not know: for choices alone.
inline constexpr std::int64_t kLikelyPairs = 8;

/// Microseconds of an H200's kind of multiprocessor, of which the problem's device has so many.
/// `blocks` ≥ 1 share the pairs. It orders what can run; as a time it is off by a tenth on an H200.
double gradient_cost(const GradientSpec& spec, std::int64_t blocks, const GradientProblem& problem);

}   // namespace pumice::cuda
