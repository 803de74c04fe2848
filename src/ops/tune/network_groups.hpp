// From the calls of a pass to what is tuned together.
#pragma once

#include <vector>

#include <pumice/ops/operator_calls.hpp>
#include <pumice/plan/plan_book.hpp>
#include <pumice/plan/target.hpp>
#include <pumice/plan/tuner.hpp>

namespace pumice {

/// The calls of one problem, and the plans that they could run with.
struct NetworkDecision {
  ConvolutionProblem problem;       // of the first of them
  std::vector<std::size_t> calls;   // by their place in the pass
  std::vector<PlanPtr> plans;       // one for each of tune::Decision::candidates
};

struct NetworkGroup {
  std::vector<NetworkDecision> decisions;
  std::vector<const KernelMap*> maps;   // none: of linear layers
};

/// Sparse products of one key, which share a plan: a group by themselves, since nothing is cut for
/// several of them.
struct SparseDecision {
  SparseProblem problem;              // of the first of them
  std::vector<std::size_t> calls;     // by their place among the sparse calls of the pass
  std::vector<SparsePlanPtr> plans;   // one for each of tune::Decision::candidates
};

struct NetworkGroups {
  std::vector<NetworkGroup> own;
  std::vector<SparseDecision> sparse;
  std::vector<tune::Group> groups;   // the same as the tuner takes them: `own`, then `sparse`
};

/// On a device calls on one map are a group, since they share what is cut of it; maps whose calls
/// have a problem in common, which then share a plan, are one group too. Plans that wait for the
/// device are no candidates: a layer that waits cannot be recorded into a graph. Neither are those
/// that add products in any order where the rules' plan does not: results stay the same bits. On
/// the CPU each call cuts for itself, so that every problem is a group. `plans_together`: as in
/// NetworkPasses.
NetworkGroups groups_of(const std::vector<OperatorCall>& calls, const Target& target,
                        bool plans_together = false);

/// Adds a group for each key of `calls`.
void add_sparse_groups(NetworkGroups& network, const std::vector<SparseCall>& calls,
                       const Target& target);

/// The plans of `assignment`.
PlanBook book_of(const NetworkGroups& network, const tune::Assignment& assignment,
                 const Target& target);

/// "3x3x3, 91767 rows"
std::string name_of_map(const KernelMap& map);

}   // namespace pumice
