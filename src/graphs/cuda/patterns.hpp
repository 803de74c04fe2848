// Patterns made and transposed on a device, by a radix sort. All is enqueued.
#pragma once

#include <pumice/graphs/csr.hpp>

namespace pumice::cuda {

/// Of entries in any order. Numbers that there are not are reported, and stand for 0.
PatternLists group_entries(std::int64_t rows, std::int64_t columns, ConstTensorView row,
                           ConstTensorView column, const EntryNames& names);

PatternLists transposed(const CsrView& pattern, StreamView stream);

}   // namespace pumice::cuda
