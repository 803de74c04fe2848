// Choices of the tables, remembered: a layer that runs again looks its kernel up.
#pragma once

#include "jit/compile.hpp"
#include "kernels/cuda/gradient_table.hpp"
#include "kernels/cuda/spec_table.hpp"

namespace pumice::cuda {

template <class Spec> struct ChosenKernel {
  Spec spec;
  const jit::Source* source = nullptr;   // whose name is that of the spec
};

/// What `choose_tile` says, without splits.
const ChosenKernel<TileSpec>& chosen_tile(TileProblem problem);
/// What `choose_gradient` says.
const ChosenKernel<GradientSpec>& chosen_gradient(const GradientProblem& problem);

}   // namespace pumice::cuda
