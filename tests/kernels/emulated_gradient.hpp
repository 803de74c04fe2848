// What tests of weight gradients on the host share.
#pragma once

#include <pumice/skeleton/gradient_warps.h>
#include <pumice/skeleton/gradient_wgmma.h>

#include "kernels/pair_list.hpp"

namespace pumice::test {

/// The kernel of a specification, for the emulator.
template <GradientSpec S> void run_gradient(const GradientArguments& arguments) {
  if constexpr (S.instruction == Instruction::wgmma) {
    gradient_wgmma<S>(arguments);
  } else if constexpr (S.instruction == Instruction::fma) {
    gradient_fma<S>(arguments);
  } else {
    gradient_mma_sync<S>(arguments);
  }
}

}   // namespace pumice::test
