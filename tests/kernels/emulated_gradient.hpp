// What tests of weight gradients on the host share.
#pragma once

#include <pumice/shared/pair_list_ref.h>
#include <pumice/skeleton/gradient_warps.h>
#include <pumice/skeleton/gradient_wgmma.h>
#include <pumice/maps/kernel_map.hpp>

namespace pumice::test {

/// The pairs of a map on the host.
inline PairListRef pair_list(const KernelMapView& map) {
  return {.offset_begin = map.offset_begin.data(),
          .in = map.in.data(),
          .out = map.out.data(),
          .pairs = {nullptr, map.pairs()},
          .offsets = static_cast<std::int32_t>(map.offsets)};
}

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
