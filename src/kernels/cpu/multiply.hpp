// Fills in the register tiles of a table: see micro_kernels.hpp.
#pragma once

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice::cpu {

void add_multiply_f32(MicroKernels& table);
void add_multiply_f64(MicroKernels& table);
/// widen, add_product, finish
void add_row_kernels(MicroKernels& table, DType storage);

}   // namespace pumice::cpu
