// What a tensor of the framework is, as far as kernels care.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <pumice/core/tensor.hpp>

namespace pumice::python {

namespace nb = nanobind;

struct TensorLook {
  void* data = nullptr;
  int device_index = -1;   // -1: on the host
  DType dtype = DType::f32;
  Shape shape{};
  bool is_contiguous = true;
};

/// The index of the device that a tensor of any type is on; -1 on the host, and for what does not
/// say, which look_at refuses.
int device_index_of(nb::handle tensor);

/// Asks the framework's table of functions where it has one and the tensor is an ordinary one (60
/// to 100 ns), and else the tensor's own methods (1 µs), which a class of tensors may override.
/// UserError, naming it, for an element type that Pumice does not take and for what is no dense
/// tensor with memory of its own: sparse, nested, quantised, wrapped by a transform of functions.
/// What memory alone does not say are a lazy sign and a derivative that a tensor carries along.
TensorLook look_at(nb::handle tensor, const char* name);
/// Where its memory begins, of any element type.
void* address_of(nb::handle tensor);

/// Whether values are the negatives of what memory holds (torch._neg_view): 60 to 80 ns, and the
/// GIL is given away for it.
bool is_negated(nb::handle tensor);
/// The same of a tensor that lives from call to call, a buffer: asked once of each. So are
/// parameters.
bool is_negated_once(nb::handle tensor);
/// Whether a level of forward-mode differentiation is open, in which tensors may carry derivatives.
bool differentiates_forward();
/// UserError, naming it, for a tensor that carries one.
void expect_no_derivative(nb::handle tensor, const char* name);
/// The values as they are, one after the other in memory: tensor.contiguous(), signs applied.
nb::object resolved(nb::handle tensor);

/// DLPack's name of an element type.
nb::dlpack::dtype dlpack_type(DType type);

/// `capsule` holds the table, as Tensor.__dlpack_c_exchange_api__ has it; `types` are the classes
/// whose tensors are ordinary ones. What is no such table, or one of another version, is left
/// alone.
void use_exchange_table(nb::handle capsule, const nb::sequence& types);
bool has_exchange_table();

}   // namespace pumice::python
