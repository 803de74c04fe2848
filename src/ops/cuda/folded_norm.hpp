// Norms folded on CUDA, many in a launch. Arguments are checked by the caller; everything is
// enqueued on the stream of the first mean.
#pragma once

#include "ops/folded_into.hpp"

namespace pumice::cuda {

/// Of f32, f16 or bf16, into f32.
void fold_norms(std::span<const SettledNorm> norms, std::span<const FoldedInto> results);

}   // namespace pumice::cuda
