// Features of a sparse tensor: read, and put back into another one, twice for each layer.
#include "sparse_conv_tensor.hpp"
#include "../arguments.hpp"

#include "parts.hpp"

namespace pumice::python::recorder {
namespace {

bool is_plain(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == parts().Tensor;
}

PyObject* features_of(PyObject* self, void*) {
  return guarded([&] {
    const Words& word = words();
    const nb::object names = names_of(self);
    PyObject* const features = item(names.ptr(), word.features);
    PyObject* const use = item(names.ptr(), word.use);
    if (features == nullptr) {
      PyErr_SetString(PyExc_AttributeError, "a SparseConvTensor without features");
      throw nb::python_error();
    }
    if (is_plain(features) && (use == nullptr || use == Py_None)) return given(features);
    if (is_deferred(features)) {
      const Ticket& ticket = ticket_of(features);
      if (leads_on(*ticket.use) && !ticket.link->is_done) return given(features);
    }
    nb::object seen = call(parts().read, {features, use == nullptr ? Py_None : use});
    if (PyDict_SetItem(names.ptr(), word.features, seen.ptr()) != 0) throw nb::python_error();
    return seen.release().ptr();
  });
}

int refuse_features(PyObject*, PyObject*, void*) {
  PyErr_SetString(PyExc_ValueError,
                  "features cannot be set: x = x.replace_feature(features) makes another tensor");
  return -1;
}

PyObject* holding_of(PyObject* self, PyObject* features) {
  return guarded([&] { return holding(names_of(self).ptr(), features, nullptr).release().ptr(); });
}

/// x.replace_feature(feature)
PyObject* replace_feature(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"feature", nullptr};
    PyObject* feature = nullptr;
    if (PyArg_ParseTupleAndKeywords(args, kwargs, "O:replace_feature", const_cast<char**>(names),
                                    &feature) == 0)
      return nullptr;
    if (is_plain(feature)) return holding(names_of(self).ptr(), feature, nullptr).release().ptr();
    if (!is_deferred(feature))
      return call(parts().replace_feature, {self, feature}).release().ptr();
    Ticket& ticket = ticket_of(feature);
    const Words& word = words();
    Use* const after = note(*ticket.use, leaves_gradients(*ticket.link) ? word.other : word.store);
    if (after != nullptr && !ticket.link->is_done) {
      put(reinterpret_cast<PyObject*&>(ticket.use), object_of(after));
      return holding(names_of(self).ptr(), feature, nullptr).release().ptr();
    }
    const nb::object use = nb::borrow(object_of(after));
    const nb::object values = call(parts().plain, {feature});
    return holding(names_of(self).ptr(), values.ptr(), use.ptr()).release().ptr();
  });
}

PyGetSetDef features_property = {"features", &features_of, &refuse_features,
                                 "[N, C], one row for each site.", nullptr};
PyMethodDef replace_feature_method = {
    "replace_feature", method_of(&replace_feature), METH_VARARGS | METH_KEYWORDS,
    "replace_feature($self, /, feature)\n--\n\nOther features, for the same rows."};
PyMethodDef holding_method = {
    "_holding", &holding_of, METH_O,
    "_holding($self, features, /)\n--\n\nThe same members with other features."};

/// Gives the class its members.
PyObject* equip_sparse_conv_tensor(PyObject*, PyObject* type) {
  return guarded([&] {
    auto* kind = reinterpret_cast<PyTypeObject*>(type);
    const nb::object members[] = {made(PyDescr_NewGetSet(kind, &features_property)),
                                  made(PyDescr_NewMethod(kind, &replace_feature_method)),
                                  made(PyDescr_NewMethod(kind, &holding_method))};
    const char* const names[] = {"features", "replace_feature", "_holding"};
    for (std::size_t i = 0; i < 3; ++i) {
      if (PyObject_SetAttrString(type, names[i], members[i].ptr()) != 0) throw nb::python_error();
    }
    return given(Py_None);
  });
}

}   // namespace

nb::object holding(PyObject* names, PyObject* features, PyObject* use) {
  const Words& word = words();
  static PyObject* const nothing = made(PyTuple_New(0)).release().ptr();
  const nb::object members = made(PyDict_Copy(names));
  PyObject* const shape = item(names, word.spatial_shape);
  if (shape == nullptr || !PyList_Check(shape)) {
    PyErr_SetString(PyExc_TypeError, "spatial_shape of a SparseConvTensor is to be a list");
    throw nb::python_error();
  }
  const nb::object own_shape = made(PyList_GetSlice(shape, 0, PyList_Size(shape)));
  if (PyDict_SetItem(members.ptr(), word.features, features) != 0 ||
      PyDict_SetItem(members.ptr(), word.use, use == nullptr ? Py_None : use) != 0 ||
      PyDict_SetItem(members.ptr(), word.spatial_shape, own_shape.ptr()) != 0)
    throw nb::python_error();
  auto* const type = reinterpret_cast<PyTypeObject*>(parts().SparseConvTensor);
  static const auto make = reinterpret_cast<newfunc>(PyType_GetSlot(type, Py_tp_new));
  nb::object tensor = made(make(type, nothing, nullptr));
  if (PyObject_GenericSetDict(tensor.ptr(), members.ptr(), nullptr) != 0) throw nb::python_error();
  return tensor;
}

void bind_sparse_conv_tensor(nb::module_& module) {
  static PyMethodDef functions[] = {
      {"equip_sparse_conv_tensor", &equip_sparse_conv_tensor, METH_O,
       "Gives spconv's sparse tensor its features and replace_feature."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
