// Fills in the register tiles of a table: see micro_kernels.hpp.
#pragma once

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice::cpu {

void add_multiply_f32(MicroKernels& table);
void add_multiply_f64(MicroKernels& table);
/// widen, add_product, finish
void add_row_kernels(MicroKernels& table, DType storage);
/// What every table for pairs of bf16 and vectors of 512 bits has in common: rows are read as they
/// are stored, and copied where `multiple` channels call for zeros behind them. The products are
/// the caller's to add.
MicroKernels bf16_pair_table(std::string_view target, std::int64_t multiple);

}   // namespace pumice::cpu
