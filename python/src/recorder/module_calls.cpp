// Calls of torch.nn.BatchNorm1d and torch.nn.ReLU on tensors that are not computed.
//
// What these modules do at a call, PyTorch's functions and its protocol for classes of tensors take
// 8 and 3 µs, to find out which function was asked for and with what. The module knows, and adding
// that to a link takes half of one. A module that was called on such a tensor once gets a
// `ModuleCall` where torch.nn.Module.compile puts its own (`_compiled_call_impl`), which
// Module.__call__ asks first. It adds the operation where the class is PyTorch's own and nothing
// watches the call, and hands all others to PyTorch. PyTorch leaves it out of copies and files.
#include "../arguments.hpp"
#include "operations.hpp"
#include "parts.hpp"

namespace pumice::python::recorder {
namespace {

/// `module`: a weak reference, since the module keeps this.
struct ModuleCall {
  PyObject_HEAD PyObject* module;

  static PyTypeObject* type;
};
PyTypeObject* ModuleCall::type = nullptr;

int visit_call(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(reinterpret_cast<ModuleCall*>(object)->module);
  return 0;
}

int clear_call(PyObject* object) {
  Py_CLEAR(reinterpret_cast<ModuleCall*>(object)->module);
  return 0;
}

void free_call(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear_call(object);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

bool has_forward_of(PyObject* kind, PyObject* forward) {
  return made(PyObject_GetAttr(kind, words().forward)).ptr() == forward;
}

/// Whether what PyTorch's class does is what it did when it was imported: nobody put another
/// function in place of those that it calls, as tools do that count or time calls.
bool is_pytorchs(PyObject* kind, bool is_norm) {
  const Parts& all = parts();
  const Words& word = words();
  return has_forward_of(kind, is_norm ? all.norm_forward : all.relu_forward) &&
         item(all.functions, is_norm ? word.batch_norm : word.relu) ==
             (is_norm ? all.norm_function : all.relu_function) &&
         made(PyObject_GetAttr(kind, word.call_impl)).ptr() == all.call_impl;
}

/// What the module adds to the link of a tensor; null where PyTorch has to call it.
nb::object added_by(PyObject* module, PyObject* deferred) {
  const Parts& all = parts();
  auto* const kind = reinterpret_cast<PyObject*>(Py_TYPE(module));
  const bool is_norm = kind == all.BatchNorm1d;
  if (!is_norm && kind != all.ReLU) return {};
  if (!is_pytorchs(kind, is_norm)) return {};
  const nb::object names = names_of(module);
  if (is_watched(names.ptr()) || !is_unwatched_operation()) return {};
  if (!is_norm) {
    PyObject* const in_place = item(names.ptr(), words().inplace);
    return in_place == nullptr ? nb::object() : rectified(deferred, in_place == Py_True);
  }
  const Link& link = *ticket_of(deferred).link;
  const nb::object norm = norm_of(names.ptr(), link.rows, link.channels);
  return norm.is_valid() ? normalized(deferred, norm.ptr()) : nb::object();
}

/// The module that is called: that of the call of Module.__call__ which asks. Who copies the names
/// of a module into another one, as replicas of DataParallel are made, copies this object along.
nb::object called(const ModuleCall& self) {
  static PyObject* const name = word("self");
  PyObject* const locals = PyEval_GetLocals();
  if (locals == nullptr) {
    PyErr_Clear();   // no function of Python runs
  } else if (PyDict_Check(locals)) {
    PyObject* const caller = item(locals, name);
    PyObject* const asks =
        caller == nullptr ? nullptr : PyObject_GetAttr(caller, words().compiled_call);
    if (asks == nullptr) PyErr_Clear();   // of what is no module
    Py_XDECREF(asks);
    if (asks == object_of(const_cast<ModuleCall*>(&self))) return nb::borrow(caller);
  }
  return nb::borrow(PyWeakref_GetObject(self.module));
}

PyObject* call_module(PyObject* object, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    auto& self = *reinterpret_cast<ModuleCall*>(object);
    const nb::object module = called(self);
    const bool has_names = kwargs != nullptr && PyDict_Size(kwargs) > 0;
    if (!has_names && PyTuple_Size(args) == 1 && is_deferred(PyTuple_GetItem(args, 0))) {
      nb::object found = added_by(module.ptr(), PyTuple_GetItem(args, 0));
      if (found.is_valid()) return found.release().ptr();
      if (is_watched(names_of(module.ptr()).ptr())) {
        // PyTorch hands what hooks watch to an autograd function first, where a tensor that waits
        // would end the gradient.
        const nb::object values = call(parts().plain, {PyTuple_GetItem(args, 0)});
        const nb::object whole = made(PyObject_GetAttr(module.ptr(), words().call_impl));
        return call(whole.ptr(), {values.ptr()}).release().ptr();
      }
    }
    const nb::object whole = made(PyObject_GetAttr(module.ptr(), words().call_impl));
    return made(PyObject_Call(whole.ptr(), args, kwargs)).release().ptr();
  });
}

/// A copy of a module's names, or a file of them, is without it.
PyObject* reduced_call(PyObject*, PyObject*) {
  return Py_BuildValue("O()", reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
}

/// Gives a module a call of its own, unless it has one.
PyObject* shorten_calls(PyObject*, PyObject* module) {
  return guarded([&] {
    const nb::object names = names_of(module);
    if (item(names.ptr(), words().compiled_call) != nullptr) return given(Py_None);
    const nb::object owner = nb::steal(object_of(allocated<ModuleCall>(ModuleCall::type)));
    reinterpret_cast<ModuleCall*>(owner.ptr())->module =
        made(PyWeakref_NewRef(module, nullptr)).release().ptr();
    if (PyDict_SetItem(names.ptr(), words().compiled_call, owner.ptr()) != 0)
      throw nb::python_error();
    return given(Py_None);
  });
}

PyObject* norm_arguments(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* module = nullptr;
    long long rows = 0;
    long long channels = 0;
    if (PyArg_ParseTuple(args, "OLL", &module, &rows, &channels) == 0) throw nb::python_error();
    nb::object norm = norm_of(names_of(module).ptr(), rows, channels);
    return norm.is_valid() ? norm.release().ptr() : given(Py_None);
  });
}

void expect_deferred(PyObject* tensor) {
  if (is_deferred(tensor)) return;
  PyErr_SetString(PyExc_TypeError, "operations are added to deferred tensors");
  throw nb::python_error();
}

PyObject* given_or_not(nb::object tensor) {
  return tensor.is_valid() ? tensor.release().ptr() : given(Py_None);
}

PyObject* normalized_in_python(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *tensor, *norm;
    if (PyArg_ParseTuple(args, "OO", &tensor, &norm) == 0) throw nb::python_error();
    expect_deferred(tensor);
    look_for_module(*ticket_of(tensor).use);
    return given_or_not(normalized(tensor, norm));
  });
}

PyObject* look_for_module_of(PyObject*, PyObject* use) {
  return guarded([&] {
    if (Py_TYPE(use) != Use::type) {
      PyErr_SetString(PyExc_TypeError, "look_for_module takes a Use");
      throw nb::python_error();
    }
    look_for_module(*reinterpret_cast<Use*>(use));
    return given(Py_None);
  });
}

PyObject* rectified_in_python(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* tensor;
    int in_place = 0;
    if (PyArg_ParseTuple(args, "Op", &tensor, &in_place) == 0) throw nb::python_error();
    expect_deferred(tensor);
    return given_or_not(rectified(tensor, in_place != 0));
  });
}

PyObject* added_in_python(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *tensor, *residual;
    int in_place = 0;
    if (PyArg_ParseTuple(args, "OOp", &tensor, &residual, &in_place) == 0) throw nb::python_error();
    expect_deferred(tensor);
    return given_or_not(added(tensor, residual, in_place != 0));
  });
}

}   // namespace

void bind_operations(nb::module_& module) {
  static PyMethodDef methods[] = {{"__reduce__", &reduced_call, METH_NOARGS, nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_methods, methods},
                                {Py_tp_dealloc, slot_of(&free_call)},
                                {Py_tp_traverse, slot_of(&visit_call)},
                                {Py_tp_clear, slot_of(&clear_call)},
                                {Py_tp_call, slot_of(&call_module)},
                                {}};
  ModuleCall::type =
      type_of("pumice._C.ModuleCall", sizeof(ModuleCall), kMadeHere | Py_TPFLAGS_HAVE_GC, slots);
  module.attr("ModuleCall") = nb::handle(object_of(ModuleCall::type));
  static PyMethodDef functions[] = {
      {"shorten_calls", &shorten_calls, METH_O,
       "Lets calls of a BatchNorm1d or ReLU on deferred tensors go straight to their links."},
      {"look_for_module", &look_for_module_of, METH_O,
       "look_for_module(use, /)\n--\n\nThe same for the module that has just called a norm or a "
       "ReLU on what "
       "has this use, the first time that is asked."},
      {"norm_of", &norm_arguments, METH_VARARGS,
       "norm_of(module, rows, channels, /)\n--\n\nThe norm of a link, of a BatchNorm1d; None where "
       "no chain "
       "has such a norm, and where the module would raise."},
      {"normalized", &normalized_in_python, METH_VARARGS,
       "normalized(tensor, norm, /)\n--\n\nThe batch norm of a deferred tensor; None where it has "
       "to be "
       "computed."},
      {"rectified", &rectified_in_python, METH_VARARGS,
       "rectified(tensor, in_place, /)\n--\n\nIts ReLU, likewise."},
      {"added", &added_in_python, METH_VARARGS,
       "added(tensor, residual, in_place, /)\n--\n\nIts sum with a link or a tensor of its shape, "
       "likewise."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
