// From a product of a sparse matrix and a machine to plans: all that come into question, and the
// one to run. The same as pumice/plan/choose.hpp is for convolutions.
#pragma once

#include <string>
#include <vector>

#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>
#include <pumice/plan/target.hpp>

namespace pumice {

struct SparseCandidate {
  SparsePlan plan;
  double cost = 1;   // predicted time, in parts of that of the first one
};

/// What could run: what `choose_by_rules` takes, then the others, the cheapest by prediction first;
/// at most kMostCandidates (pumice/plan/choose.hpp). All of them compute the same up to rounding.
/// Predictions go by the histogram of row lengths, where the problem has it.
std::vector<SparseCandidate> candidates(const SparseProblem& problem, const Target& target);

/// The plan to run: what was measured for such a problem on this machine, if anything was (books
/// and the store of pumice/plan/plan_book.hpp), else what the rules say. They also say it where the
/// lengths of rows are known and the measured plan would cut this pattern into padding, and where
/// it would leave rows whole that are too long for that; the plan's reason says so then.
SparsePlanPtr choose(const SparseProblem& problem, const Target& target);

/// The rules alone, which look at channels, types, rows and entries, and not at lengths: no row has
/// to be counted before a product runs.
SparsePlanPtr choose_by_rules(const SparseProblem& problem, const Target& target);

/// Whether a product can go over parts of a pattern: sums, choices and dot products, but not
/// gradients of max and min, nor scores of attention; on a device not gradients of means either,
/// and up to 2^30 entries.
bool can_cut(const SparseProblem& problem, const Target& target);

/// UserError where a given plan does not fit.
void check(const SparsePlan& plan, const SparseProblem& problem, const Target& target);

/// The problem, how long its rows are, the choice, why other formats were not chosen, and what else
/// could run, in a few lines of words.
std::string explain(const SparseProblem& problem, const Target& target, const SparsePlan& plan);

}   // namespace pumice
