// Patterns made and transposed on the CPU, by a counting sort.
#pragma once

#include <pumice/graphs/csr.hpp>

namespace pumice::cpu {

/// Of entries in any order; UserError for numbers that there are not.
PatternLists group_entries(std::int64_t rows, std::int64_t columns, ConstTensorView row,
                           ConstTensorView column, const EntryNames& names);

PatternLists transposed(const CsrView& pattern);

}   // namespace pumice::cpu
