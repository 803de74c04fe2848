// Products over parts on a device, of arguments that fit.
#pragma once

#include <pumice/kernels/part_products.hpp>

namespace pumice::cuda {

/// UserError for parts of blocks, which have no kernel.
void spmm(const PartReduceArguments& arguments, EntryReduction reduction);
void sddmm(const PartDotArguments& arguments);

}   // namespace pumice::cuda
