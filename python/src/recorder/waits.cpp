// What every interface asks: whether a layer may wait, and its output that does.
#include "../arguments.hpp"
#include "parts.hpp"
#include "region.hpp"
#include "ticket.hpp"

namespace pumice::python::recorder {
namespace {

/// can_wait(features)
PyObject* can_wait(PyObject*, PyObject* features) {
  return guarded([&] {
    const Parts& all = parts();
    auto* const kind = reinterpret_cast<PyObject*>(Py_TYPE(features));
    if (item(all.defers, words().defers) != Py_True ||
        (kind != all.Tensor && kind != all.Deferred && kind != all.Observed))
      return given(Py_False);
    return given(is_unwatched(gpu_of(features).ptr()) && is_open() ? Py_True : Py_False);
  });
}

/// waiting_output(source, parameter, layout, training, out_channels, map, use, norm, relu, plans)
PyObject* waiting_output(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *source, *parameter, *layout, *out_channels, *map, *use, *norm, *plans;
    int training = 0;
    int relu = 0;
    if (PyArg_ParseTuple(args, "OOOpOOO!OpO", &source, &parameter, &layout, &training,
                         &out_channels, &map, Use::type, &use, &norm, &relu, &plans) == 0)
      throw nb::python_error();
    const nb::object link = make_link(source, parameter, layout, training != 0, out_channels, map,
                                      reinterpret_cast<Use*>(use), plans);
    if (norm != Py_None) {
      normalize(link_in(link.ptr()), norm);
      if (relu != 0) rectify(link_in(link.ptr()));
    }
    return stand_in(link_in(link.ptr())).release().ptr();
  });
}

/// joined(left, right, use)
PyObject* joined(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *left, *right, *use;
    if (PyArg_ParseTuple(args, "OOO!", &left, &right, Use::type, &use) == 0)
      throw nb::python_error();
    if (!is_link(left) && !is_link(right)) {
      PyErr_SetString(PyExc_TypeError, "a join waits for a link");
      throw nb::python_error();
    }
    const nb::object link = make_join(left, right, reinterpret_cast<Use*>(use));
    return stand_in(link_in(link.ptr())).release().ptr();
  });
}

}   // namespace

void bind_waits(nb::module_& module) {
  static PyMethodDef functions[] = {
      {"can_wait", &can_wait, METH_O,
       "Whether a layer that is called with these features may compute later: no hooks watch its "
       "call, and "
       "no graph or transform is being made."},
      {"waiting_output", &waiting_output, METH_VARARGS,
       "waiting_output(source, parameter, layout, training, out_channels, map, use, norm, relu, "
       "plans, "
       "/)\n--\n\nThe "
       "output [M, out] of a layer for `source` [N, in], with the norm (or None) and the ReLU of "
       "its "
       "container. It is computed when it is read."},
      {"joined", &joined, METH_VARARGS,
       "joined(left, right, use, /)\n--\n\nChannels of two links or tensors [N, …] side by side; "
       "one "
       "of them is a link. They are brought together when that is read."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
