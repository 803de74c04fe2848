// Looks whether an operation can be added, and adds it.
#include "operations.hpp"

#include "parts.hpp"

namespace pumice::python::recorder {
namespace {

/// The tensor that an operation returns after it was added to `link`, whose use was `before`.
nb::object went_on(Link& link, Use& before, PyObject* in_place) {
  Use* const use = before.then;
  const nb::object owner = nb::borrow(object_of(&link));
  put(reinterpret_cast<PyObject*&>(link.use), object_of(use));
  if (in_place != nullptr) {   // the tensor that the user holds changes
    Ticket& ticket = ticket_of(in_place);
    ticket.stage = link.stage;
    put(reinterpret_cast<PyObject*&>(ticket.use), object_of(use));
    if (!leads_on(*use)) result(link);
    return nb::borrow(in_place);
  }
  if (leads_on(*use)) return stand_in(link);
  return call(parts().went_on, {owner.ptr(), object_of(use)});
}

bool awaits(const Ticket& ticket, PyObject* what) {
  return ticket.use->known == what && ticket.use->then != nullptr && is_open(ticket);
}

/// `other` as a link can add it; null where it cannot, or where Python has to look closer.
nb::object residual_for(Link& link, PyObject* other) {
  const Words& word = words();
  if (is_deferred(other)) {
    const Ticket& ticket = ticket_of(other);
    Link& residual = *ticket.link;
    if (residual.is_done || is_join(residual) || &residual == &link ||
        !(residual.switches == link.switches) || ticket.stage != residual.stage ||
        residual.dtype != link.dtype || residual.rows != link.rows ||
        residual.channels != link.channels || !is_equal(residual.device, link.device) ||
        goes_back(other))
      return {};
    return nb::borrow(object_of(&residual));
  }
  if (reinterpret_cast<PyObject*>(Py_TYPE(other)) != parts().Tensor) return {};
  if (made(PyObject_GetAttr(other, word.dtype)).ptr() != link.dtype ||
      !is_equal(made(PyObject_GetAttr(other, word.shape)).ptr(), link.shape) ||
      !is_equal(made(PyObject_GetAttr(other, word.device)).ptr(), link.device))
    return {};
  return nb::borrow(other);
}

nb::object sum_onto(PyObject* main, PyObject* other, bool in_place) {
  if (!is_deferred(main)) return {};
  const Ticket& ticket = ticket_of(main);
  Link& link = *ticket.link;
  if (ticket.stage != kNormed || !awaits(ticket, words().sum)) return {};
  const nb::object residual = residual_for(link, other);
  if (!residual.is_valid()) return {};
  if (residual.ptr() != other) note(*ticket_of(other).use, words().sum);
  return added(main, residual.ptr(), in_place);
}

nb::object asked_for(PyObject* function, PyObject* args, PyObject* kwargs) {
  PyObject* const kind = PyDict_GetItemWithError(parts().kinds, function);
  if (kind == nullptr) {
    PyErr_Clear();   // of a function without a hash
    return {};
  }
  const bool has_names = kwargs != nullptr && kwargs != Py_None && PyDict_Size(kwargs) > 0;
  const Py_ssize_t count = PyTuple_Size(args);
  if (kind == words().sum && count == 2 && !has_names) {
    return summed(PyTuple_GetItem(args, 0), PyTuple_GetItem(args, 1),
                  PySet_Contains(parts().in_place, function) == 1);
  }
  if (kind == words().relu && count == 1 && is_deferred(PyTuple_GetItem(args, 0))) {
    PyObject* const in_place = has_names ? item(kwargs, words().inplace) : nullptr;
    if (has_names && (in_place == nullptr || PyDict_Size(kwargs) != 1)) return {};
    look_for_module(*ticket_of(PyTuple_GetItem(args, 0)).use);
    return rectified(PyTuple_GetItem(args, 0),
                     in_place == Py_True || PySet_Contains(parts().in_place, function) == 1);
  }
  return {};
}

}   // namespace

PyObject* torch_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    static PyObject* const nothing = made(PyTuple_New(0)).release().ptr();
    PyObject* const args = count > 2 ? arguments[2] : nothing;
    PyObject* const kwargs = count > 3 ? arguments[3] : Py_None;
    if (count < 2 || !PyTuple_Check(args)) {
      PyErr_SetString(PyExc_TypeError,
                      "__torch_function__ takes a function, types, args and kwargs");
      throw nb::python_error();
    }
    nb::object found = asked_for(arguments[0], args, kwargs);
    if (!found.is_valid()) found = call(parts().asked, {arguments[0], arguments[1], args, kwargs});
    return found.release().ptr();
  });
}

nb::object normalized(PyObject* deferred, PyObject* norm) {
  const Ticket& ticket = ticket_of(deferred);
  Link& link = *ticket.link;
  if (ticket.stage != kConvolved || !awaits(ticket, words().norm)) return {};
  const nb::object owner = nb::borrow(object_of(&link));
  Use& use = *ticket.use;
  normalize(link, norm);
  return went_on(link, use, nullptr);
}

nb::object rectified(PyObject* deferred, bool in_place) {
  const Ticket& ticket = ticket_of(deferred);
  if (!awaits(ticket, words().relu)) return {};
  rectify(*ticket.link);
  return went_on(*ticket.link, *ticket.use, in_place ? deferred : nullptr);
}

nb::object added(PyObject* deferred, PyObject* residual, bool in_place) {
  const Ticket& ticket = ticket_of(deferred);
  if (ticket.stage != kNormed || !awaits(ticket, words().sum)) return {};
  add(*ticket.link, residual);
  return went_on(*ticket.link, *ticket.use, in_place ? deferred : nullptr);
}

nb::object summed(PyObject* left, PyObject* right, bool in_place) {
  nb::object sum = sum_onto(left, right, in_place);
  return sum.is_valid() || in_place ? sum : sum_onto(right, left, false);
}

nb::object norm_of(PyObject* names, std::int64_t rows, std::int64_t channels) {
  const Words& word = words();
  const Parts& all = parts();
  PyObject* const parameters = item(names, word.parameters);
  PyObject* const buffers = item(names, word.buffers);
  PyObject* const training = item(names, word.training);
  PyObject* momentum = item(names, word.momentum);
  PyObject* const eps = item(names, word.eps);
  if (parameters == nullptr || buffers == nullptr || momentum == nullptr || eps == nullptr ||
      (training != Py_True && training != Py_False) ||
      item(names, word.track_running_stats) != Py_True)
    return {};
  const auto found = [](PyObject* in, PyObject* name, PyObject* kind) -> PyObject* {
    PyObject* const tensor = item(in, name);
    if (tensor == nullptr || reinterpret_cast<PyObject*>(Py_TYPE(tensor)) != kind) return nullptr;
    return tensor;
  };
  PyObject* const weight = found(parameters, word.weight, all.Parameter);
  PyObject* const bias = found(parameters, word.bias, all.Parameter);
  PyObject* const mean = found(buffers, word.running_mean, all.Tensor);
  PyObject* const variance = found(buffers, word.running_var, all.Tensor);
  if (weight == nullptr || bias == nullptr || mean == nullptr || variance == nullptr) return {};
  if (training == Py_True && (rows < 2 || momentum == Py_None)) return {};
  const nb::object shape = made(PyObject_GetAttr(weight, word.shape));
  if (PyTuple_Size(shape.ptr()) != 1 ||
      PyLong_AsLongLong(PyTuple_GetItem(shape.ptr(), 0)) != channels)
    return {};
  static PyObject* const none = made(PyFloat_FromDouble(0)).release().ptr();
  if (momentum == Py_None) momentum = none;
  PyObject* const batches = training == Py_True ? item(buffers, word.num_batches_tracked) : nullptr;
  return made(PyTuple_Pack(kNormParts, mean, variance, weight, bias, training, momentum, eps,
                           batches == nullptr ? Py_None : batches));
}

void look_for_module(Use& use) {
  if (use.is_looked_at) return;
  use.is_looked_at = true;
  made(PyObject_CallNoArgs(parts().shorten));
}

bool is_watched(PyObject* names) {
  const Words& word = words();
  return !is_empty(item(names, word.forward_hooks)) ||
         !is_empty(item(names, word.forward_pre_hooks)) ||
         !is_empty(item(names, word.backward_hooks)) ||
         !is_empty(item(names, word.backward_pre_hooks)) || item(names, word.forward) != nullptr;
}

}   // namespace pumice::python::recorder
