// Plans that `choose` takes before its rules.
#pragma once

#include <pumice/plan/choose.hpp>
#include <pumice/plan/choose_sparse.hpp>

namespace pumice {

/// The plan of such a problem in the book that is open, else in the process's store; null where
/// there is none. A stored plan that does not fit is left out, with a line in the log of plans.
/// That of a sparse product fits all of its problem but the number of entries and their rows.
PlanPtr measured_choice(const ConvolutionProblem& problem, const Target& target);
SparsePlanPtr measured_choice(const SparseProblem& problem, const Target& target);

}   // namespace pumice
