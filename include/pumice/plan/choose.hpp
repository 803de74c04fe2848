// From a problem and a machine to plans: all that come into question, and the one to run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/problem.hpp>
#include <pumice/plan/target.hpp>

namespace pumice {

class PlanBook;

struct Candidate {
  ConvolutionPlan plan;
  double cost = 1;   // predicted time, in parts of that of the first one
};

/// What could run: what `choose_by_rules` takes, then the others, the cheapest by prediction first;
/// at most kMostCandidates. All of them compute the same up to rounding.
inline constexpr std::size_t kMostCandidates = 12;
std::vector<Candidate> candidates(const ConvolutionProblem& problem, const Target& target);

/// The plan to run: what was measured for such a problem on this machine, if anything was (books
/// and the store of pumice/plan/plan_book.hpp), else what the rules say. `wanted` overrides the
/// choice of dataflow; the rest still follows, by rules. UserError when it cannot be had: a weight
/// gradient has one way, and some channels have no kernel.
PlanPtr choose(const ConvolutionProblem& problem, const Target& target,
               std::optional<Dataflow> wanted = std::nullopt);

/// The same, where `beside` comes after what was measured to be better than the rules' plan, and
/// before that plan.
PlanPtr choose(const ConvolutionProblem& problem, const Target& target, const PlanBook& beside);

/// The heuristic alone, which is the same for the same problem; on a device it looks at a rounded
/// number of rows only.
PlanPtr choose_by_rules(const ConvolutionProblem& problem, const Target& target,
                        std::optional<Dataflow> wanted = std::nullopt);

/// Whether one kernel may read a second tensor and a shortcut where they lie: on a device, with
/// implicit GEMM, in one group, in rows of whole 16 bytes. Choosing nothing, this costs nothing.
bool can_fuse_inputs(const ConvolutionProblem& problem, const Target& target, Dataflow dataflow);

/// UserError where a given plan does not fit: a tile that no kernel can be built from, or a
/// dataflow of another direction.
void check(const ConvolutionPlan& plan, const ConvolutionProblem& problem, const Target& target);

/// The problem, the choice, and why the others were not chosen, in a few lines of words.
std::string explain(const ConvolutionProblem& problem, const Target& target,
                    const ConvolutionPlan& plan);

}   // namespace pumice
