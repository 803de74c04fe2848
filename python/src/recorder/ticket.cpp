// Makes tensors that stand for links, and answers what is asked of them without their numbers.
#include "ticket.hpp"
#include "../arguments.hpp"

#include "operations.hpp"
#include "parts.hpp"

namespace pumice::python::recorder {

PyTypeObject* Ticket::type = nullptr;

namespace {

int visit_ticket(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Ticket*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(object_of(self->link));
  Py_VISIT(self->again);
  return 0;
}

int clear_ticket(PyObject* object) {
  auto* self = reinterpret_cast<Ticket*>(object);
  Py_CLEAR(self->again);
  if (self->link == nullptr) return 0;
  (self->before == nullptr ? self->link->tickets : self->before->after) = self->after;
  if (self->after != nullptr) self->after->before = self->before;
  self->before = self->after = nullptr;
  Link* const link = self->link;
  self->link = nullptr;
  Py_DECREF(object_of(link));
  return 0;
}

void free_ticket(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear_ticket(object);
  Py_XDECREF(object_of(reinterpret_cast<Ticket*>(object)->use));
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

/// A property of the class `Deferred`: what it looks at is the ticket.
template <class Look> PyObject* looked(PyObject* deferred, Look&& look) {
  return guarded([&] { return given_or_none(look(ticket_of(deferred))); });
}

PyObject* link_of(PyObject* self, void*) {
  return looked(self, [](Ticket& ticket) { return object_of(ticket.link); });
}
PyObject* use_of_ticket(PyObject* self, void*) {
  return looked(self, [](Ticket& ticket) { return object_of(ticket.use); });
}
PyObject* device_of(PyObject* self, void*) {
  return looked(self, [](Ticket& ticket) { return ticket.link->device; });
}
PyObject* is_cuda_of(PyObject* self, void*) {
  return looked(self, [](Ticket& ticket) { return ticket.link->is_cuda ? Py_True : Py_False; });
}
PyObject* shape_of(PyObject* self, void*) {
  return looked(self, [](Ticket& ticket) { return ticket.link->shape; });
}
PyObject* dtype_of(PyObject* self, void*) {
  return looked(self, [](Ticket& ticket) { return ticket.link->dtype; });
}
PyObject* stage_of(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(ticket_of(self).stage); });
}

PyGetSetDef properties[] = {
    {"link", &link_of, nullptr, "What it stands for the result of.", nullptr},
    {"use", &use_of_ticket, nullptr, "What is done to it.", nullptr},
    {"stage", &stage_of, nullptr, "Of the link, that it stands for.", nullptr},
    {"device", &device_of, nullptr, "The device of the result.", nullptr},
    {"is_cuda", &is_cuda_of, nullptr, "Whether the device is a GPU.", nullptr},
    {"shape", &shape_of, nullptr, "[N, C]", nullptr},
    {"dtype", &dtype_of, nullptr, "The type of the result.", nullptr},
    {}};

PyMethodDef torch_function_method = {"__torch_function__", method_of(&torch_function),
                                     METH_FASTCALL,
                                     "__torch_function__($type, function, types, args=(), "
                                     "kwargs=None, /)\n--\n\nAdds an operation to a link, "
                                     "or computes it."};

/// Gives the class of tensors its properties.
PyObject* equip_deferred(PyObject*, PyObject* type) {
  return guarded([&] {
    auto* kind = reinterpret_cast<PyTypeObject*>(type);
    for (PyGetSetDef* property = properties; property->name != nullptr; ++property) {
      const nb::object descriptor = made(PyDescr_NewGetSet(kind, property));
      if (PyObject_SetAttrString(type, property->name, descriptor.ptr()) != 0)
        throw nb::python_error();
    }
    const nb::object asked = made(PyDescr_NewClassMethod(kind, &torch_function_method));
    if (PyObject_SetAttrString(type, "__torch_function__", asked.ptr()) != 0)
      throw nb::python_error();
    return given(Py_None);
  });
}

PyObject* stand_in_of(PyObject*, PyObject* link) {
  return guarded([&] {
    if (!is_link(link)) {
      PyErr_SetString(PyExc_TypeError, "a tensor stands for a link");
      throw nb::python_error();
    }
    return stand_in(link_in(link)).release().ptr();
  });
}

PyObject* is_open_of(PyObject*, PyObject* tensor) {
  return guarded([&] { return given(is_open(ticket_of(tensor)) ? Py_True : Py_False); });
}

}   // namespace

bool is_deferred(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == parts().Deferred;
}

Ticket& ticket_of(PyObject* deferred) {
  const nb::object ticket = made(PyObject_GetAttr(deferred, words().ticket));
  if (Py_TYPE(ticket.ptr()) != Ticket::type) {
    PyErr_SetString(PyExc_AttributeError, "a deferred tensor has no ticket");
    throw nb::python_error();
  }
  return *reinterpret_cast<Ticket*>(ticket.ptr());
}

nb::object stand_in(Link& link) {
  static PyObject* const names =
      made(Py_BuildValue("sss", "dtype", "device", "requires_grad")).release().ptr();
  const Parts& all = parts();
  PyObject* const arguments[] = {all.Deferred, link.shape, link.dtype, link.device,
                                 link.requires_grad ? Py_True : Py_False};
  nb::object tensor = made(nb::detail::vectorcall(all.make_wrapper, arguments, 2, names));
  const nb::object owner = nb::steal(object_of(allocated<Ticket>(Ticket::type)));
  auto& ticket = *reinterpret_cast<Ticket*>(owner.ptr());
  ticket.link = reinterpret_cast<Link*>(given(object_of(&link)));
  ticket.use = reinterpret_cast<Use*>(given(object_of(link.use)));
  ticket.stage = link.stage;
  ticket.after = link.tickets;
  if (link.tickets != nullptr) link.tickets->before = &ticket;
  link.tickets = &ticket;
  if (PyObject_SetAttr(tensor.ptr(), words().ticket, owner.ptr()) != 0) throw nb::python_error();
  return tensor;
}

bool is_open(const Ticket& ticket) {
  const Link& link = *ticket.link;
  // Links are made without hooks: what is called under them, to be run again later, has to be
  // computed where it is called.
  return !link.is_done && link.takers == 0 && ticket.stage == link.stage &&
         learns_now() == link.learns && !has_hooks_on_saved();
}

bool leaves_gradients(const Link& link) {
  return link.requires_grad && !learns_now();
}

bool goes_back(PyObject* deferred) {
  // Without gradients, and where the link has some, nobody has to ask for it, which takes a
  // microsecond.
  if (ticket_of(deferred).link->requires_grad || !learns_now()) return false;
  return call(parts().goes_back, {deferred}).ptr() == Py_True;
}

Link* source_in(PyObject* deferred) {
  const Ticket& ticket = ticket_of(deferred);
  Link* const link = ticket.link;
  if (link->is_done || ticket.stage != link->stage || link->stage == kConvolved ||
      leaves_gradients(*link))
    return nullptr;
  return goes_back(deferred) ? nullptr : link;
}

void bind_tickets(nb::module_& module) {
  static PyMemberDef members[] = {object_member("link", offsetof(Ticket, link)),
                                  object_member("use", offsetof(Ticket, use), true),
                                  object_member("again", offsetof(Ticket, again), true),
                                  number_member("stage", offsetof(Ticket, stage), true),
                                  {}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot_of(&free_ticket)},
                                {Py_tp_traverse, slot_of(&visit_ticket)},
                                {Py_tp_clear, slot_of(&clear_ticket)},
                                {Py_tp_members, members},
                                {}};
  Ticket::type = type_of("pumice._C.Ticket", sizeof(Ticket), kMadeHere | Py_TPFLAGS_HAVE_GC, slots);
  module.attr("Ticket") = nb::handle(object_of(Ticket::type));
  static PyMethodDef functions[] = {
      {"equip_deferred", &equip_deferred, METH_O,
       "Gives the class of deferred tensors its properties."},
      {"stand_in", &stand_in_of, METH_O,
       "A tensor that stands for the result of a link, as far as that has been asked for."},
      {"takes_more", &is_open_of, METH_O,
       "Whether more can be added to the link of a deferred tensor."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
