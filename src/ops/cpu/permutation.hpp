// Copies with axes in another order on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/ops/permutation.hpp>

namespace pumice::cpu {

void permute(std::span<const Permutation> copies);

}   // namespace pumice::cpu
