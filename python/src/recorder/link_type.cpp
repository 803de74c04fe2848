// The type of links, as Python sees them.
#include <array>

#include "link.hpp"
#include "parts.hpp"
#include "region.hpp"
#include "ticket.hpp"

namespace pumice::python::recorder {

PyTypeObject* Link::type = nullptr;

namespace {

/// All members that are objects but those of other links.
constexpr std::array kObjects = {&Link::parameter, &Link::layout, &Link::plans, &Link::map,
                                 &Link::mode,      &Link::norm,   &Link::shape, &Link::device,
                                 &Link::dtype,     &Link::value,  &Link::error, &Link::again,
                                 &Link::early};

int visit_link(PyObject* object, visitproc visit, void* arg) {
  Link& self = link_in(object);
  Py_VISIT(Py_TYPE(object));
  for (const auto member : kObjects)
    Py_VISIT(self.*member);
  Py_VISIT(self.source);
  Py_VISIT(self.second);
  Py_VISIT(self.residual);
  return 0;
}

int clear_link(PyObject* object) {
  Link& self = link_in(object);
  let_go(self, self.source);
  let_go(self, self.second);
  let_go(self, self.residual);
  for (const auto member : kObjects)
    Py_CLEAR(self.*member);
  return 0;
}

void free_link(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  Link& self = link_in(object);
  PyObject_GC_UnTrack(object);
  if (self.weak_references != nullptr) PyObject_ClearWeakRefs(object);
  take_out(self);
  clear_link(object);
  Py_XDECREF(object_of(self.use));
  delete self.users;
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

template <class Work> PyObject* on_link(PyObject* self, Work&& work) {
  return guarded([&] { return work(link_in(self)); });
}

/// link.result(stage=None)
PyObject* result_in_python(PyObject* self, PyObject* args) {
  return on_link(self, [&](Link& link) {
    PyObject* stage = Py_None;
    if (PyArg_ParseTuple(args, "|O", &stage) == 0) throw nb::python_error();
    if (stage == Py_None || PyLong_AsLong(stage) == link.stage) return result(link).release().ptr();
    if (!link.is_done) result(link);
    if (link.error != nullptr) return result(link).release().ptr();   // raises it
    const auto kept = [&] {
      return link.early == nullptr ? nullptr : PyDict_GetItemWithError(link.early, stage);
    };
    if (kept() == nullptr && link.again != nullptr)
      call(item(parts().running, words().convolve_again), {self});
    PyObject* const found = kept();
    if (found == nullptr && PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_KeyError, "a stage that no tensor stood for");
    if (found == nullptr) throw nb::python_error();
    return given(found);
  });
}

PyObject* normalize_in_python(PyObject* self, PyObject* norm) {
  return on_link(self, [&](Link& link) {
    normalize(link, norm);
    return given(Py_None);
  });
}

PyObject* add_in_python(PyObject* self, PyObject* residual) {
  return on_link(self, [&](Link& link) {
    add(link, residual);
    return given(Py_None);
  });
}

PyObject* rectify_in_python(PyObject* self, PyObject*) {
  rectify(link_in(self));
  return given(Py_None);
}

PyObject* finish_in_python(PyObject* self, PyObject*) {
  return on_link(self, [](Link& link) {
    finish(link);
    return given(Py_None);
  });
}

PyObject* before_a_change_in_python(PyObject* self, PyObject*) {
  return on_link(self, [](Link& link) {
    before_a_change(link);
    return given(Py_None);
  });
}

PyObject* held_in_python(PyObject* self, PyObject*) {
  return PyLong_FromLong(held(link_in(self)));
}

PyObject* changed_in_python(PyObject* self, PyObject*) {
  return on_link(self, [](Link& link) {
    const char* what = changed(link);
    return what == nullptr ? given(Py_None) : made(PyUnicode_FromString(what)).release().ptr();
  });
}

PyObject* tickets_in_python(PyObject* self, PyObject*) {
  return on_link(self, [](Link& link) {
    nb::list all;
    for (Ticket* ticket = link.tickets; ticket != nullptr; ticket = ticket->after)
      all.append(nb::borrow(object_of(ticket)));
    return all.release().ptr();
  });
}

PyObject* device_number(PyObject* self, PyObject*) {
  Link& link = link_in(self);
  return link.is_cuda ? PyObject_GetAttr(link.device, words().index) : PyLong_FromLong(-1);
}

PyObject* early_in_python(PyObject* self, void*) {
  return on_link(self, [](Link& link) {
    if (link.early == nullptr) link.early = made(PyDict_New()).release().ptr();
    return given(link.early);
  });
}

}   // namespace

void bind_links(nb::module_& module) {
  static PyMemberDef members[] = {
      object_member("parameter", offsetof(Link, parameter)),
      object_member("layout", offsetof(Link, layout)),
      object_member("plans", offsetof(Link, plans)),
      object_member("map", offsetof(Link, map)),
      object_member("use", offsetof(Link, use)),
      object_member("mode", offsetof(Link, mode)),
      object_member("source", offsetof(Link, source)),
      object_member("second", offsetof(Link, second)),
      object_member("residual", offsetof(Link, residual)),
      object_member("norm", offsetof(Link, norm)),
      object_member("shape", offsetof(Link, shape)),
      object_member("device", offsetof(Link, device)),
      object_member("dtype", offsetof(Link, dtype)),
      object_member("value", offsetof(Link, value), true),
      object_member("error", offsetof(Link, error), true),
      object_member("again", offsetof(Link, again), true),
      {"value_version", T_LONG, offsetof(Link, value_version), 0, nullptr},
      number_member("stage", offsetof(Link, stage)),
      number_member("takers", offsetof(Link, takers)),
      number_member("early_held", offsetof(Link, early_held), true),
      flag_member("relu", offsetof(Link, relu)),
      flag_member("is_done", offsetof(Link, is_done)),
      flag_member("is_cuda", offsetof(Link, is_cuda)),
      flag_member("learns", offsetof(Link, learns)),
      flag_member("requires_grad", offsetof(Link, requires_grad)),
      flag_member("training", offsetof(Link, training)),
      {"__weaklistoffset__", T_PYSSIZET, offsetof(Link, weak_references), READONLY, nullptr},
      {}};
  static PyMethodDef methods[] = {
      {"result", &result_in_python, METH_VARARGS,
       "result($self, stage=None, /)\n--\n\nIts result, or that of an earlier stage; computed if "
       "it is not "
       "there yet."},
      {"normalize", &normalize_in_python, METH_O, "Adds a batch norm."},
      {"add", &add_in_python, METH_O, "Adds a sum with a link or a tensor."},
      {"rectify", &rectify_in_python, METH_NOARGS, "Adds a ReLU."},
      {"finish", &finish_in_python, METH_NOARGS, "Says that it is done, and frees what it took."},
      {"before_a_change", &before_a_change_in_python, METH_NOARGS,
       "Computes the links that take its result, before that is changed in place."},
      {"held", &held_in_python, METH_NOARGS,
       "The stages whose results tensors still stand for: a bit for each."},
      {"changed", &changed_in_python, METH_NOARGS,
       "What was changed in place since it was given: 'weight', 'norm', 'features' or None."},
      {"tickets", &tickets_in_python, METH_NOARGS, "Of the tensors that stand for its results."},
      {"get_device", &device_number, METH_NOARGS,
       "The number of the GPU, -1 on the CPU, as a tensor has it."},
      {}};
  static PyGetSetDef computed[] = {
      {"early", &early_in_python, nullptr, "Results of earlier stages, by the stage.", nullptr},
      {}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot_of(&free_link)},
                                {Py_tp_traverse, slot_of(&visit_link)},
                                {Py_tp_clear, slot_of(&clear_link)},
                                {Py_tp_members, members},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, computed},
                                {}};
  Link::type = type_of("pumice._C.Link", sizeof(Link), kMadeHere | Py_TPFLAGS_HAVE_GC, slots);
  module.attr("Link") = nb::handle(object_of(Link::type));
}

}   // namespace pumice::python::recorder
