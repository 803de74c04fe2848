// Where operators say what they run.
#pragma once

#include <pumice/ops/operator_calls.hpp>

namespace pumice {

/// Costs one load where nobody records.
bool records_calls();
void note_call(OperatorCall call);
/// The same of sparse products.
bool records_sparse_calls();
/// Copies the pattern of the first call of each key, and waits for that on a device. What is
/// captured into a graph is not noted.
void note_sparse_call(SparseProblem problem, SparsePlanPtr plan, const CsrView& pattern,
                      StreamView stream);

}   // namespace pumice
