#include "arguments.hpp"

#include <pumice/core/error.hpp>

namespace pumice::python {
namespace {

constexpr std::size_t kLongest = 80;   // bytes of a value in a sentence

/// Whether its text is short, and says what it is.
bool is_number_or_text(nb::handle value) {
  return value.is_none() || PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) ||
         PyUnicode_Check(value.ptr()) || PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
}

}   // namespace

void expect_new_name(const nb::module_& module, const char* name) {
  PUMICE_ENSURES(!nb::hasattr(module, name), "the extension has two functions of the name ", name);
}

void add_functions(nb::module_& module, PyMethodDef* functions) {
  for (const PyMethodDef* one = functions; one->ml_name != nullptr; ++one)
    expect_new_name(module, one->ml_name);
  if (PyModule_AddFunctions(module.ptr(), functions) != 0) throw nb::python_error();
}

std::string described_object(const std::string& type) {
  if (type == "Map") return "a map, as pumice.ops.submanifold_map and its like make";
  if (type == "Sites") return "Coordinates, as x.coords of a sparse tensor x";
  if (type == "Graph") return "a graph, as pumice.Graph(edge_index) makes";
  if (type == "Decomposed") return "parts, as pumice.formats.decompose makes";
  if (type == "TypedRows") return "types of rows, as pumice.TypedRows(begin) makes";
  if (type == "Window") return "the window of a layer, as layer.window";
  return "a " + type + " of the extension";
}

void refuse_argument(const char* name, nb::handle value, const std::string& wanted) {
  if (!is_number_or_text(value)) {
    const std::string type = nb::str(nb::handle(Py_TYPE(value.ptr())).attr("__name__")).c_str();
    pumice::detail::raise_user(name, " is a ", type, ": give ", wanted);
  }
  std::string text = nb::repr(value).c_str();
  if (text.size() > kLongest) {
    std::size_t end = kLongest;
    while (end > 0 &&
           (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)   // inside a character
      --end;
    text = text.substr(0, end) + "…";
  }
  pumice::detail::raise_user(name, " = ", text, ": give ", wanted);
}

}   // namespace pumice::python
