// Asks PyTorch, 30 to 40 ns a question.
#include "switches.hpp"

#include <pumice/core/stream.hpp>

#include "parts.hpp"
#include "words.hpp"

namespace pumice::python::recorder {
namespace {

bool is_none(PyObject* part) {
  return part == nullptr || part == Py_None;
}

long long number_of(PyObject* function, std::initializer_list<PyObject*> arguments = {}) {
  const nb::object answer = call(function, arguments);
  const long long number = PyLong_AsLongLong(answer.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

bool compiles() {
  const Parts& all = parts();
  PyObject* flag = item(all.compiler, words().is_compiling);
  return flag == nullptr ? says_yes(all.is_compiling) : flag != Py_False;
}

bool has_global_hooks() {
  PyObject* const hooks = parts().global_hooks;
  for (Py_ssize_t i = 0; i < PyTuple_Size(hooks); ++i) {
    if (!is_empty(PyTuple_GetItem(hooks, i))) return true;
  }
  return false;
}

bool is_given(PyObject* function, std::initializer_list<PyObject*> arguments = {}) {
  return call(function, arguments).ptr() != Py_None;
}

/// The stream of CUDA that is current on a device.
long long stream_on(PyObject* device) {
  const nb::object index = made(PyObject_GetAttr(device, words().index));
  return number_of(parts().raw_stream, {index.ptr()});
}

/// Whether the current stream of a GPU is being recorded. PyTorch's own question looks for the
/// current device twice, and asks about the null stream too, which is never recorded.
bool is_recorded_on(PyObject* gpu) {
  if (is_none(parts().raw_stream)) return false;   // a test's device
  const nb::object index = made(PyObject_GetAttr(gpu, words().index));
  const auto native = static_cast<std::uintptr_t>(stream_on(gpu));
  return is_capturing({{DeviceKind::cuda, static_cast<int>(PyLong_AsLong(index.ptr()))},
                       reinterpret_cast<void*>(native)});
}

}   // namespace

Mode mode_now(bool is_cuda, PyObject* device, PyObject* dtype) {
  const Parts& all = parts();
  static PyObject* const cpu = word("cpu");
  static PyObject* const cuda = word("cuda");
  Mode mode;
  mode.learns = learns_now();
  mode.infers = says_yes(all.infers);
  if (says_yes(all.any_autocast) && dtype != all.float64) {
    PyObject* const kind = is_cuda ? cuda : cpu;
    if (call(all.autocasts, {kind}).ptr() == Py_True) {
      mode.autocast = call(all.autocast_dtype, {kind}).ptr();   // one of PyTorch's constants
    }
  }
  if (is_cuda) mode.stream = stream_on(device);
  return mode;
}

nb::object tuple_of(const Mode& mode) {
  return made(Py_BuildValue("OOOL", mode.learns ? Py_True : Py_False,
                            mode.infers ? Py_True : Py_False,
                            mode.autocast == nullptr ? Py_None : mode.autocast, mode.stream));
}

bool learns_now() {
  return says_yes(parts().learns);
}

bool has_hooks_on_saved() {
  static PyObject* const yes = given(Py_True);
  PyObject* const hooks = parts().hooks_on_saved;
  return !is_none(hooks) && is_given(hooks, {yes});
}

nb::object gpu_of(PyObject* tensor) {
  const Words& names = words();
  if (made(PyObject_GetAttr(tensor, names.is_cuda)).ptr() != Py_True) return {};
  return made(PyObject_GetAttr(tensor, names.device));
}

bool is_unwatched(PyObject* gpu) {
  const Parts& all = parts();
  if (compiles() || says_yes(all.transforms) || number_of(all.dispatch_modes) > 0 ||
      is_given(all.tracing) || has_global_hooks())
    return false;
  PyObject* level = item(all.forward_ad, words().current_level);
  if (level != nullptr && PyLong_AsLong(level) >= 0) return false;
  if (has_hooks_on_saved()) return false;
  return gpu == nullptr || item(all.defers, words().in_graphs) == Py_True || !is_recorded_on(gpu);
}

bool is_unwatched_operation() {
  const Parts& all = parts();
  return !compiles() && number_of(all.function_modes) == 0 && number_of(all.dispatch_modes) == 0 &&
         !is_given(all.tracing) && !has_global_hooks();
}

long version_of(PyObject* tensor) {
  PyObject* version = PyObject_GetAttr(tensor, words().version);
  if (version == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) throw nb::python_error();
    PyErr_Clear();   // of inference mode
    return 0;
  }
  const long number = PyLong_AsLong(version);
  Py_DECREF(version);
  return number;
}

bool requires_grad(PyObject* tensor) {
  return made(PyObject_GetAttr(tensor, words().requires_grad)).ptr() == Py_True;
}

}   // namespace pumice::python::recorder
