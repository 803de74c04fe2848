// The recorder: what layers that are called one by one note of their calls, to run together later.
// python/pumice/nn/deferred says what it does and is its other half, for all that is seldom asked
// for.
#pragma once

#include <nanobind/nanobind.h>

namespace pumice::python {

void bind_recorder(nanobind::module_& module);

}   // namespace pumice::python
