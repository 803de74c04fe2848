// The sparse tensor of pumice.compat.spconv, as far as calls of layers ask it.
#pragma once

#include "ticket.hpp"

namespace pumice::python::recorder {

/// Another tensor with the members of `x`, whose names these are, and other features. `use` may be
/// null.
nb::object holding(PyObject* names, PyObject* features, PyObject* use);

void bind_sparse_conv_tensor(nb::module_& module);

}   // namespace pumice::python::recorder
