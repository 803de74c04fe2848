// Learns what is done to outputs.
#include "use.hpp"

namespace pumice::python::recorder {

PyTypeObject* Use::type = nullptr;
PyTypeObject* Habit::type = nullptr;

namespace {

/// Whether `what` can follow a result of kind `kind` in one pass of a chain. Every result can be
/// stored in a sparse tensor.
bool follows(PyObject* kind, PyObject* what) {
  const Words& word = words();
  if (what == word.store) return true;
  if (kind == word.convolution) return what == word.norm;
  if (kind == word.norm) return what == word.sum || what == word.relu;
  return kind == word.sum && what == word.relu;
}

/// Whether `what` leaves a result of kind `kind` as it is, for others to take it as well.
bool only_takes(PyObject* kind, PyObject* what) {
  const Words& word = words();
  if (what == word.product && kind == word.join) return true;
  if (what == word.join || what == word.product)
    return kind == word.norm || kind == word.sum || kind == word.relu;
  return what == word.sum && kind == word.relu;   // it is what a later block adds
}

/// The kinds of use as Python wrote them, which may be other objects than the words.
PyObject* kind_of(PyObject* text) {
  const Words& word = words();
  for (PyObject* kind : {word.convolution, word.norm, word.sum, word.relu, word.store, word.take,
                         word.join, word.product, word.other}) {
    if (kind == text || is_equal(kind, text)) return kind;
  }
  PyErr_Format(PyExc_ValueError, "%R is no kind of use", text);
  throw nb::python_error();
}

PyObject* new_use(PyTypeObject*, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject* kind = nullptr;
    int is_unseen = 0;
    if (PyArg_ParseTuple(args, "O|p", &kind, &is_unseen) == 0) throw nb::python_error();
    return make_use(kind_of(kind), is_unseen != 0).release().ptr();
  });
}

void free_use(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  auto* self = reinterpret_cast<Use*>(object);
  Py_XDECREF(self->kind);
  Py_XDECREF(self->known);
  Py_XDECREF(object_of(self->then));
  Py_XDECREF(object_of(self->joined));
  PyObject_Free(object);
  Py_DECREF(type);
}

PyObject* note_in_python(PyObject* self, PyObject* what) {
  return guarded(
      [&] { return given_or_none(object_of(note(*reinterpret_cast<Use*>(self), kind_of(what)))); });
}

PyObject* new_habit(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    nb::object made_habit = nb::steal(object_of(allocated<Habit>(type)));
    reinterpret_cast<Habit*>(made_habit.ptr())->codes = made(PyDict_New()).release().ptr();
    return made_habit.release().ptr();
  });
}

int visit_habit(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(reinterpret_cast<Habit*>(object)->codes);
  return 0;
}

int clear_habit(PyObject* object) {
  Py_CLEAR(reinterpret_cast<Habit*>(object)->codes);
  return 0;
}

void free_habit(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear_habit(object);
  for (Use* use : reinterpret_cast<Habit*>(object)->uses)
    Py_XDECREF(object_of(use));
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

PyObject* use_in_python(PyObject* self, PyObject* args) {
  return guarded([&] {
    int training = 0;
    int learns = 0;
    PyObject* kind = words().convolution;
    if (PyArg_ParseTuple(args, "pp|O", &training, &learns, &kind) == 0) throw nb::python_error();
    Habit& habit = *reinterpret_cast<Habit*>(self);
    return given(object_of(use_of(habit, training != 0, learns != 0, kind_of(kind))));
  });
}

/// A copy of a layer starts without habits.
PyObject* without_habits(PyObject*, PyObject*) {
  return new_habit(Habit::type, nullptr, nullptr);
}

PyObject* reduced(PyObject*, PyObject*) {
  return Py_BuildValue("O()", object_of(Habit::type));
}

}   // namespace

nb::object make_use(PyObject* kind, bool is_unseen) {
  Use* use = allocated<Use>(Use::type);
  use->kind = given(kind);
  use->is_unseen = is_unseen;
  return nb::steal(object_of(use));
}

Use* note(Use& use, PyObject* what) {
  const Words& word = words();
  if (use.is_unseen) return nullptr;
  if (only_takes(use.kind, what)) what = word.take;
  if (use.known == what) return use.then;
  const bool is_first = use.known == nullptr;
  const bool is_followed = is_first && follows(use.kind, what);
  Use* const then =
      is_followed
          ? reinterpret_cast<Use*>(make_use(what == word.store ? use.kind : what).release().ptr())
          : nullptr;
  put(use.known, is_followed || (is_first && what == word.take) ? what : word.other);
  Use* const before = use.then;
  use.then = then;
  Py_XDECREF(object_of(before));
  return then;
}

Use* use_of(Habit& habit, bool training, bool learns, PyObject* kind) {
  const Words& word = words();
  const std::size_t last = kind == word.convolution ? 0 : kind == word.norm ? 1 : 2;
  Use*& use = habit.uses[(training ? 6 : 0) + (learns ? 3 : 0) + last];
  if (use == nullptr) use = reinterpret_cast<Use*>(make_use(kind).release().ptr());
  return use;
}

void bind_uses(nb::module_& module) {
  static PyMemberDef use_members[] = {object_member("kind", offsetof(Use, kind)),
                                      object_member("known", offsetof(Use, known)),
                                      object_member("then", offsetof(Use, then)),
                                      object_member("joined", offsetof(Use, joined), true),
                                      {}};
  static PyMethodDef use_methods[] = {{"note", &note_in_python, METH_O,
                                       "note($self, what, /)\n--\n\nRecords that `what` was done; "
                                       "returns `then`, or None where that is "
                                       "not followed any further."},
                                      {}};
  static PyType_Slot use_slots[] = {{Py_tp_new, slot_of(&new_use)},
                                    {Py_tp_dealloc, slot_of(&free_use)},
                                    {Py_tp_members, use_members},
                                    {Py_tp_methods, use_methods},
                                    {}};
  Use::type = type_of("pumice._C.Use", sizeof(Use), Py_TPFLAGS_DEFAULT, use_slots);
  module.attr("Use") = nb::handle(object_of(Use::type));

  static PyMemberDef habit_members[] = {object_member("codes", offsetof(Habit, codes)), {}};
  static PyMethodDef habit_methods[] = {{"of", &use_in_python, METH_VARARGS,
                                         "of($self, training, learns, kind='convolution', "
                                         "/)\n--\n\nThe use of an output. `kind`: what the "
                                         "layer's container did last before the user sees it."},
                                        {"__deepcopy__", &without_habits, METH_O, nullptr},
                                        {"__reduce__", &reduced, METH_NOARGS, nullptr},
                                        {}};
  static PyType_Slot habit_slots[] = {{Py_tp_new, slot_of(&new_habit)},
                                      {Py_tp_dealloc, slot_of(&free_habit)},
                                      {Py_tp_traverse, slot_of(&visit_habit)},
                                      {Py_tp_clear, slot_of(&clear_habit)},
                                      {Py_tp_members, habit_members},
                                      {Py_tp_methods, habit_methods},
                                      {}};
  Habit::type = type_of("pumice._C.Habit", sizeof(Habit), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                        habit_slots);
  module.attr("Habit") = nb::handle(object_of(Habit::type));
}

}   // namespace pumice::python::recorder
