// GatherParts and DotParts on a device, from parts and tensors to launches.
#pragma once

#include <pumice/kernels/part_products.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// One launch over all parts, and one more where rows have several pieces. Parts that have a table
/// (Decomposed::table).
void launch_gather_parts(jit::KernelRunner& runner, const PartReduceArguments& arguments,
                         EntryReduction reduction);

/// One launch over all parts.
void launch_dot_parts(jit::KernelRunner& runner, const PartDotArguments& arguments);

}   // namespace pumice::cuda
