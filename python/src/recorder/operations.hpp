// Norms, sums and ReLUs of tensors that are not computed, added to their links.
#pragma once

#include "ticket.hpp"

namespace pumice::python::recorder {

/// Deferred.__torch_function__(function, types, args=(), kwargs=None)
PyObject* torch_function(PyObject* type, PyObject* const* arguments, Py_ssize_t count);

// Each of these returns the tensor after the operation, null where it has to be done at once.

/// `norm`: a tuple of kNormParts.
nb::object normalized(PyObject* deferred, PyObject* norm);
/// A sum with a link or a tensor of its shape.
nb::object added(PyObject* deferred, PyObject* residual, bool in_place);
nb::object rectified(PyObject* deferred, bool in_place);
nb::object summed(PyObject* left, PyObject* right, bool in_place);

/// The arguments of torch.nn.functional.batch_norm for features [rows, channels], and the count of
/// batches, of a module with these names; null where no chain has such a norm, and where the module
/// would raise.
nb::object norm_of(PyObject* names, std::int64_t rows, std::int64_t channels);

/// After an operation that PyTorch's functions asked for: looks once for the module that called
/// them.
void look_for_module(Use& use);

/// Whether a call of a module with these names does more than its class says.
bool is_watched(PyObject* names);

void bind_operations(nb::module_& module);

}   // namespace pumice::python::recorder
