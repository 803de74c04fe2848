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
  std::uint32_t architecture = kSm90a;

  friend bool operator==(const GradientProblem&, const GradientProblem&) = default;
};

/// A specification with the parts that the problem fixes, and no schedule.
GradientSpec base_spec(const GradientProblem& problem);

/// Valid specs for the problem's architecture, the likeliest first.
std::vector<GradientSpec> gradient_candidates(const GradientProblem& problem);

/// The first of them; UserError where no kernel fits.
GradientSpec choose_gradient(const GradientProblem& problem);

/// Thread blocks along x for a device of so many multiprocessors: as many as run at a time.
std::int64_t gradient_blocks(const GradientSpec& spec, int multiprocessors);

/// Every spec that can be picked for the channel pairs of well-known networks.
std::vector<GradientSpec> standard_gradients(std::uint32_t architecture);

}   // namespace pumice::cuda
