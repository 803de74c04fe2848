// Norms folded on the CPU. Arguments are checked by the caller.
#pragma once

#include "ops/folded_into.hpp"

namespace pumice::cpu {

void fold_norms(std::span<const SettledNorm> norms, std::span<const FoldedInto> results);

}   // namespace pumice::cpu
