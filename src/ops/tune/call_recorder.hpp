// Where operators say what they run.
#pragma once

#include <pumice/ops/operator_calls.hpp>

namespace pumice {

/// Whether a call on `device` is to be noted; costs two loads where nobody records. Not in a scope
/// of one pass, whatever thread records: its maps are in memory that others overwrite.
bool records_calls(Device device);
void note_call(OperatorCall call);
/// The same of sparse products.
bool records_sparse_calls(Device device);
/// Copies the pattern of the first call of each key, and waits for that on a device. What is
/// captured into a graph is not noted.
void note_sparse_call(SparseProblem problem, SparsePlanPtr plan, const CsrView& pattern,
                      StreamView stream);

}   // namespace pumice
