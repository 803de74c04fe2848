// Products over parts on a device, of arguments that fit.
#pragma once

#include <pumice/kernels/part_products.hpp>

namespace pumice::cuda {

/// UserError for parts of blocks, which have no kernel. `teams`: of a plan; null: the usual ones.
void spmm(const PartReduceArguments& arguments, EntryReduction reduction,
          const TeamSchedule* teams = nullptr);
void sddmm(const PartDotArguments& arguments, const TeamSchedule* teams = nullptr);

}   // namespace pumice::cuda
