// spmm and sddmm over what a pattern was cut into, in any format, on the CPU. Gradients go over the
// pattern itself, whose entries have the same numbers.
#pragma once

#include <pumice/formats/decomposed.hpp>
#include <pumice/ops/spmm.hpp>

namespace pumice {

/// As spmm of the pattern, whose arguments these are: of equal maxima and minima the first in the
/// order of the pattern, means over all entries of a row, in whichever parts they are. Sums are
/// added part by part, so that they may round differently.
SpmmResult spmm(const Decomposed& parts, ConstTensorView values, ConstTensorView features,
                EntryReduction reduction = EntryReduction::sum, const SpmmPlaces& places = {});

/// As sddmm of the pattern: [entries, heads] by the entries' numbers.
Tensor sddmm(const Decomposed& parts, ConstTensorView left, ConstTensorView right,
             std::int64_t heads = 1, const Place& place = {});

}   // namespace pumice
