// GatherParts and DotParts on a device, from parts and tensors to launches.
#pragma once

#include <pumice/kernels/part_products.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// One launch over all parts, and one more where rows have several pieces. Parts that have a table
/// (Decomposed::table). `teams`: of a plan; null: one chunk for each thread.
void launch_gather_parts(jit::KernelRunner& runner, const PartReduceArguments& arguments,
                         EntryReduction reduction, const TeamSchedule* teams);

/// One launch over all parts.
void launch_dot_parts(jit::KernelRunner& runner, const PartDotArguments& arguments,
                      const TeamSchedule* teams);

}   // namespace pumice::cuda
