// Choices that were made before: of one process, for all its threads. A choice for a device looks
// at a rounded number of rows, so that there are few of them.
#pragma once

#include <optional>

#include <pumice/plan/choose.hpp>

namespace pumice {

/// The problem as a choice for a device sees it: with rounded rows, without pairs.
ConvolutionProblem as_chosen(ConvolutionProblem problem);

/// Null where none was made for this problem, which is as a choice sees it.
PlanPtr known_choice(const ConvolutionProblem& problem, const Target& target,
                     std::optional<Dataflow> wanted);
/// Keeps one, and returns what is kept: another thread may have been first.
PlanPtr keep_choice(const ConvolutionProblem& problem, const Target& target,
                    std::optional<Dataflow> wanted, PlanPtr made);

/// For when measured plans change.
void forget_choices();

}   // namespace pumice
