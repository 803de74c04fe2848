// Attributes and methods of the framework's tensors, their names made once.
#pragma once

#include <nanobind/nanobind.h>

namespace pumice::python {

struct Names {
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* get_device = PyUnicode_InternFromString("get_device");
  PyObject* is_contiguous = PyUnicode_InternFromString("is_contiguous");
  PyObject* new_empty = PyUnicode_InternFromString("new_empty");
  PyObject* contiguous = PyUnicode_InternFromString("contiguous");
  PyObject* resolve_neg = PyUnicode_InternFromString("resolve_neg");
  PyObject* current_level = PyUnicode_InternFromString("_current_level");
  PyObject* is_inference = PyUnicode_InternFromString("is_inference");
  PyObject* version = PyUnicode_InternFromString("_version");
  PyObject* dtype_argument = PyUnicode_InternFromString("dtype");
};

inline const Names& names() {
  static const Names& all = *new Names;
  return all;
}

/// object.name, without building the name anew.
inline nanobind::object attribute(nanobind::handle object, PyObject* name) {
  PyObject* result = PyObject_GetAttr(object.ptr(), name);
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

/// An integer of Python as a number, and as the address it says.
inline long long integer_in(nanobind::handle value) {
  const long long number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nanobind::python_error();
  return number;
}
inline void* address_in(nanobind::handle value) {
  void* address = PyLong_AsVoidPtr(value.ptr());
  if (address == nullptr && PyErr_Occurred() != nullptr) throw nanobind::python_error();
  return address;
}

/// object.name(), without building the name anew.
inline nanobind::object call_method(nanobind::handle object, PyObject* name) {
  PyObject* arguments[] = {object.ptr()};
  PyObject* result = nanobind::detail::vectorcall_method(name, arguments, 1, nullptr);
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

}   // namespace pumice::python
