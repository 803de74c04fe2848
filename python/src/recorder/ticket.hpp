// What a tensor that is not computed stands for, and the tensor itself
// (python/pumice/nn/deferred/tensors.py).
#pragma once

#include "link.hpp"

namespace pumice::python::recorder {

/// Kept by one tensor of the class `Deferred` alone, so that the link knows which tensors there
/// are. `again` keeps the link's input alive, where the result may have to be computed again.
struct Ticket {
  PyObject_HEAD Link* link;
  Use* use;
  PyObject* again;
  int stage;
  Ticket* before;
  Ticket* after;

  static PyTypeObject* type;
};

/// Of a tensor of the class `Deferred`; it lives as long as that.
Ticket& ticket_of(PyObject* deferred);
bool is_deferred(PyObject* object);

/// A tensor that stands for the result of a link, as far as that has been asked for.
nb::object stand_in(Link& link);

/// Whether more can be added to the link of a tensor: it is not computed, and nothing else takes
/// its result.
bool is_open(const Ticket& ticket);
/// Whether code without gradients asks for a result that has some, as an autograd function does,
/// and the code that torch.utils.checkpoint runs: the gradients that it returns go to the tensor
/// that it was given.
bool leaves_gradients(const Link& link);
/// Whether gradients of what is computed of a tensor now have to go to the tensor itself, not to
/// its link.
bool goes_back(PyObject* deferred);
/// The link as a source for another; null where its values are wanted.
Link* source_in(PyObject* deferred);

void bind_tickets(nb::module_& module);

}   // namespace pumice::python::recorder
