// Types of Python that are structs of C++, with the functions of Python's stable interface.
//
// The layers of other libraries' interfaces wait (python/pumice/nn/deferred), and what they note of
// a call has to cost less than the launch that it saves. A call of a function that nanobind binds,
// and an attribute of a class that it makes, take 80 to 150 ns; a network asks for some thousands
// of them in a pass. A member of such a struct takes a nanosecond here, and 20 to 40 in Python.
#pragma once

#include <cstddef>
#include <exception>
#include <initializer_list>

#include <nanobind/nanobind.h>
#include <structmember.h>

namespace pumice::python::recorder {

namespace nb = nanobind;

/// A new reference that Python's functions return; throws the error that they set where it is null.
inline nb::object made(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}
inline nb::object borrowed(PyObject* object) {
  return nb::borrow(object);
}

/// What a dictionary holds under an interned name; null where it holds nothing.
inline PyObject* item(PyObject* dictionary, PyObject* name) {
  PyObject* found = PyDict_GetItemWithError(dictionary, name);
  if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return found;
}
inline bool is_empty(PyObject* dictionary) {
  return dictionary != nullptr && PyDict_Size(dictionary) == 0;
}

/// The names that an object's attributes are kept under, which it has.
inline nb::object names_of(PyObject* object) {
  return made(PyObject_GenericGetDict(object, nullptr));
}

inline nb::object call(PyObject* function, std::initializer_list<PyObject*> arguments) {
  return made(nb::detail::vectorcall(function, arguments.begin(), arguments.size(), nullptr));
}
inline bool says_yes(PyObject* function) {
  const nb::object answer = made(PyObject_CallNoArgs(function));
  if (answer.ptr() == Py_True) return true;
  if (answer.ptr() == Py_False) return false;
  return PyObject_IsTrue(answer.ptr()) == 1;
}

/// The same numbers, as lists of Python or tuples.
inline bool is_equal(PyObject* left, PyObject* right) {
  if (left == right) return true;
  const int same = PyObject_RichCompareBool(left, right, Py_EQ);
  if (same < 0) throw nb::python_error();
  return same == 1;
}

/// `work` returns a new reference. What it throws becomes the error of Python that it is.
template <class Work> PyObject* guarded(Work&& work) noexcept {
  try {
    return work();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// Replaces a member; what it was is let go last, since that may run any code.
inline void put(PyObject*& member, PyObject* object) {
  PyObject* const before = member;
  Py_XINCREF(object);
  member = object;
  Py_XDECREF(before);
}
inline PyObject* given(PyObject* object) {
  Py_INCREF(object);
  return object;
}
inline PyObject* given_or_none(PyObject* object) {
  return given(object == nullptr ? Py_None : object);
}

/// Members of a type that Python may read.
inline PyMemberDef object_member(const char* name, std::size_t offset, bool writable = false) {
  return {name, T_OBJECT, static_cast<Py_ssize_t>(offset), writable ? 0 : READONLY, nullptr};
}
inline PyMemberDef flag_member(const char* name, std::size_t offset) {
  return {name, T_BOOL, static_cast<Py_ssize_t>(offset), READONLY, nullptr};
}
inline PyMemberDef number_member(const char* name, std::size_t offset, bool writable = false) {
  return {name, T_INT, static_cast<Py_ssize_t>(offset), writable ? 0 : READONLY, nullptr};
}

template <class Struct> Struct* allocated(PyTypeObject* type) {
  PyObject* object = PyType_GenericAlloc(type, 0);   // all members are null
  if (object == nullptr) throw nb::python_error();
  return reinterpret_cast<Struct*>(object);
}
template <class Struct> PyObject* object_of(Struct* self) {
  return reinterpret_cast<PyObject*>(self);
}
template <class Function> PyCFunction method_of(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
template <class Pointer> void* slot_of(Pointer pointer) {
  return reinterpret_cast<void*>(pointer);
}

/// Flags of a type that Python cannot make objects of.
inline constexpr unsigned kMadeHere = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;

/// Makes a type of `slots`, which live as long as the process.
inline PyTypeObject* type_of(const char* name, std::size_t bytes, unsigned flags,
                             PyType_Slot* slots) {
  PyType_Spec spec{name, static_cast<int>(bytes), 0, flags, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

}   // namespace pumice::python::recorder
