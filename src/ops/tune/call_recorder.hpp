// Where operators say what they run.
#pragma once

#include <pumice/ops/operator_calls.hpp>

namespace pumice {

/// Costs one load where nobody records.
bool records_calls();
void note_call(OperatorCall call);

}   // namespace pumice
