// Copies with axes in another order on CUDA. Arguments are checked by the caller; everything is
// enqueued on the stream of the runner.
#pragma once

#include <pumice/ops/permutation.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

void permute(jit::KernelRunner& runner, std::span<const Permutation> copies);

}   // namespace pumice::cuda
