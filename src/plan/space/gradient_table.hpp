// Which weight gradient kernels can be picked, and which one is picked unmeasured.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/shared/gradient_spec.h>

namespace pumice::cuda {

struct GradientProblem {
  ElementType operand = ElementType::f16;
  Write write = Write::add;       // slots: the same bits every time
  std::int32_t in_channels = 0;   // of a group
  std::int32_t out_channels = 0;
  std::int32_t groups = 1;
  std::int32_t offsets = 343;   // their table lies beside the stages; up to 7³ cost none of them
  std::int64_t rows = 0;        // output rows: a capacity will do
  std::uint32_t architecture = kSm90a;
  std::int32_t multiprocessors = 132;

  friend bool operator==(const GradientProblem&, const GradientProblem&) = default;
};

/// A specification with the parts that the problem fixes, and no schedule.
GradientSpec base_spec(const GradientProblem& problem);

/// A kernel and how many blocks share the pairs.
struct GradientChoice {
  GradientSpec spec;
  std::int32_t share_blocks = 0;   // 0: as many as run at a time (`gradient_blocks`)
};

/// Valid specs for the problem's architecture; at most three. The number of rows decides between
/// them.
std::vector<GradientSpec> gradient_candidates(const GradientProblem& problem);

/// The cheapest by gradient_cost: no measurement, the same answer for the same problem. UserError
/// where no kernel fits, with the reason.
GradientChoice choose_gradient(const GradientProblem& problem);

/// Thread blocks along x for a device of so many multiprocessors: as many as run at a time.
std::int64_t gradient_blocks(const GradientSpec& spec, int multiprocessors);

/// Every spec that choose_gradient picks for this problem with some number of rows, on some device
/// of its architecture.
std::vector<GradientSpec> pickable_gradients(GradientProblem problem);

/// Every spec that can be picked for the channel pairs of well-known networks.
std::vector<GradientSpec> standard_gradients(std::uint32_t architecture);

}   // namespace pumice::cuda
