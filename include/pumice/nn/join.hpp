// Bringing two branches of a network together.
#pragma once

#include <pumice/nn/context.hpp>
#include <pumice/nn/sparse_tensor.hpp>

namespace pumice::nn {

/// Channels side by side. Both on the same sites: UserError otherwise, because a row would meet a
/// stranger; `unite_concatenate` is for different ones.
SparseTensor concatenate(const SparseTensor& left, const SparseTensor& right, Context& context);
/// What `concatenate` asks of its tensors.
void check_concatenable(const SparseTensor& left, const SparseTensor& right);
SparseTensor add(const SparseTensor& left, const SparseTensor& right, Context& context);

/// On the union of both sets of sites; a row that one side lacks counts as 0 there.
SparseTensor unite_concatenate(const SparseTensor& left, const SparseTensor& right,
                               Context& context);
SparseTensor unite_add(const SparseTensor& left, const SparseTensor& right, Context& context);

}   // namespace pumice::nn
