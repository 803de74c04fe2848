// Calls of spconv's convolutions whose output is known to wait, from their container or by
// themselves.
//
// Python's way (compat/spconv/pytorch/convolution.py) takes 15 µs, since it asks PyTorch and the
// arguments some sixty questions, each of them an attribute or a call; here they are looked up.
// Whatever is out of the ordinary is left to Python.
#include "../arguments.hpp"
#include "../sites.hpp"
#include "operations.hpp"
#include "parts.hpp"
#include "region.hpp"
#include "sparse_conv_tensor.hpp"

namespace pumice::python::recorder {
namespace {

struct Layer {
  nb::object names;   // of the module
  PyObject* weight = nullptr;
  PyObject* kept = nullptr;
  Habit* habit = nullptr;
  nb::object habit_owner{};
  bool training = false;
};

bool is_one(PyObject* number) {
  static PyObject* const one = made(PyLong_FromLong(1)).release().ptr();
  return number == one;
}

/// Whether a convolution can be a link of a chain, for all that its members say.
bool look_at_layer(PyObject* module, Layer& layer) {
  const Words& word = words();
  const Parts& all = parts();
  auto* const kind = reinterpret_cast<PyObject*>(Py_TYPE(module));
  if (all.convolution_forward == nullptr ||
      made(PyObject_GetAttr(kind, word.forward)).ptr() != all.convolution_forward ||
      made(PyObject_GetAttr(kind, word.call_impl)).ptr() != all.call_impl)
    return false;
  layer.names = names_of(module);
  PyObject* const names = layer.names.ptr();
  PyObject* const parameters = item(names, word.parameters);
  PyObject* const training = item(names, word.training);
  if (is_watched(names) || parameters == nullptr || item(parameters, word.bias) != Py_None ||
      !is_one(item(names, word.groups)) || item(names, word.act_type) != all.no_activation ||
      (training != Py_True && training != Py_False))
    return false;
  layer.weight = item(parameters, word.weight);
  layer.kept = item(names, word.kept);
  if (layer.weight == nullptr || layer.kept == nullptr ||
      reinterpret_cast<PyObject*>(Py_TYPE(layer.weight)) != all.Parameter)
    return false;
  layer.habit_owner = made(PyObject_GetAttr(layer.kept, word.habit));
  if (Py_TYPE(layer.habit_owner.ptr()) != Habit::type) return false;
  layer.habit = reinterpret_cast<Habit*>(layer.habit_owner.ptr());
  layer.training = training == Py_True;
  return true;
}

bool is_on(PyObject* constant) {
  return item(parts().constants, constant) != Py_False;
}

/// The features that a sparse tensor holds, where a layer that is called with them may wait.
PyObject* waiting_features(PyObject* input) {
  const Words& word = words();
  PyObject* const features = item(input, word.features);
  if (features == nullptr || item(input, word.benchmark) != Py_False ||
      item(parts().defers, word.defers) != Py_True || is_on(word.eval_ignores_autocast) ||
      is_on(word.refuse_as_spconv))
    return nullptr;
  const bool is_deferred_one = is_deferred(features);
  if (!is_deferred_one && reinterpret_cast<PyObject*>(Py_TYPE(features)) != parts().Tensor)
    return nullptr;
  nb::object gpu;
  if (is_deferred_one) {
    const Link& link = *ticket_of(features).link;
    if (link.is_cuda) gpu = borrowed(link.device);
  } else {
    gpu = gpu_of(features);
  }
  return is_unwatched(gpu.ptr()) && is_open() ? features : nullptr;
}

/// Whether the features have the channels and the type that the layer takes.
bool fits(PyObject* features, const Layer& layer) {
  const Words& word = words();
  nb::object dtype;
  long long channels = 0;
  bool is_cuda = false;
  nb::object device;
  if (is_deferred(features)) {
    const Link& link = *ticket_of(features).link;
    dtype = nb::borrow(link.dtype);
    channels = link.channels;
    is_cuda = link.is_cuda;
    device = nb::borrow(link.device);
  } else {
    const nb::object shape = made(PyObject_GetAttr(features, word.shape));
    if (PyTuple_Size(shape.ptr()) != 2) return false;
    channels = PyLong_AsLongLong(PyTuple_GetItem(shape.ptr(), 1));
    dtype = made(PyObject_GetAttr(features, word.dtype));
    is_cuda = made(PyObject_GetAttr(features, word.is_cuda)).ptr() == Py_True;
    device = made(PyObject_GetAttr(features, word.device));
  }
  PyObject* const wanted = item(layer.names.ptr(), word.in_channels);
  if (wanted == nullptr || PyLong_AsLongLong(wanted) != channels) return false;
  return made(PyObject_GetAttr(layer.weight, word.dtype)).ptr() == dtype.ptr() ||
         mode_now(is_cuda, device.ptr(), dtype.ptr()).autocast != nullptr;
}

/// The map that another submanifold layer left under the same key on these very sites; null where
/// Python has to look closer.
nb::object shared_map(const Layer& layer, PyObject* input) {
  const Words& word = words();
  PyObject* const names = layer.names.ptr();
  PyObject* const key = item(names, word.indice_key);
  PyObject* const dictionary = item(input, word.indice_dict);
  if (item(names, word.subm) != Py_True || key == nullptr || dictionary == nullptr ||
      !PyDict_Check(dictionary))
    return {};
  PyObject* const data = item(dictionary, key);
  PyObject* const known = item(input, word.known_sites);
  if (data == nullptr || known == nullptr || !PyTuple_Check(known)) return {};
  const nb::object of_data = names_of(data);
  PyObject* const kept = of_data.ptr();
  PyObject* const indices = item(input, word.indices);
  PyObject* const shape = item(input, word.spatial_shape);
  PyObject* const batch_size = item(input, word.batch_size);
  PyObject* const window = item(names, word.window);
  PyObject* const kept_window = item(kept, word.window);
  PyObject* const kept_shape = item(kept, word.spatial_shape);
  if (item(kept, word.is_subm) != Py_True || indices == nullptr || shape == nullptr ||
      batch_size == nullptr || window == nullptr || kept_window == nullptr || kept_shape == nullptr)
    return {};
  const auto of_sites = [&](Py_ssize_t at) { return PyTuple_GetItem(known, at); };
  if (of_sites(4) != item(kept, word.coords) || of_sites(0) != indices ||
      PyLong_AsLong(of_sites(1)) != version_of(indices) || !is_equal(of_sites(2), shape) ||
      !is_equal(of_sites(3), batch_size) || !is_equal(kept_shape, shape))
    return {};
  if (window != kept_window && !is_equal(made(PyObject_GetAttr(window, word.numbers)).ptr(),
                                         made(PyObject_GetAttr(kept_window, word.numbers)).ptr()))
    return {};
  PyObject* const map = item(kept, word.map);
  return map == nullptr || !nb::isinstance<Map>(map) ? nb::object() : nb::borrow(map);
}

/// Which map a layer works through, and what it takes.
struct Place {
  nb::object map{};
  nb::object found{};    // what makes the output, where that is on other sites or remembers a map
  nb::object source{};   // a link or a tensor
};

/// Null members where Python has to call the layer.
Place place_of(PyObject* module, const Layer& layer, PyObject* x, PyObject* input,
               PyObject* features) {
  const Words& word = words();
  PyObject* const names = layer.names.ptr();
  Place place{.map = shared_map(layer, input)};
  const bool is_shared = place.map.is_valid();
  if (!is_shared &&
      (item(names, word.record_voxel_count) != Py_False || parts().look_up == nullptr))
    return {};
  // Layers that change sites begin a chain: what leads to them is needed elsewhere more often than
  // not, and a device has something to do while sites are counted.
  const bool waits =
      is_shared || item(names, word.subm) == Py_True || item(names, word.conv1x1) == Py_True;
  if (waits && is_deferred(features)) {
    Link* const before = source_in(features);
    place.source =
        before != nullptr ? nb::borrow(object_of(before)) : call(parts().plain, {features});
  } else if (waits) {
    place.source = nb::borrow(features);
  } else {
    PyObject* const arguments[] = {x};
    place.source = made(nb::detail::vectorcall_method(word.computed, arguments, 1, nullptr));
  }
  if (is_shared) return place;
  const nb::object answer = call(parts().look_up, {module, x});
  if (!PyTuple_Check(answer.ptr())) return {};
  place.map = nb::borrow(PyTuple_GetItem(answer.ptr(), 0));
  place.found = nb::borrow(PyTuple_GetItem(answer.ptr(), 1));
  return nb::isinstance<Map>(place.map) ? place : Place{};
}

/// The sparse tensor that a convolution returns, with the norm and the ReLU of its container: one
/// that waits. Null where Python has to call it. `norm`: names of a module, or null.
nb::object convolved(PyObject* module, const Layer& layer, PyObject* x, Use* use, PyObject* norm,
                     bool relu) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(x)) != parts().SparseConvTensor) return {};
  const nb::object input = names_of(x);
  const nb::object features = nb::borrow(waiting_features(input.ptr()));
  if (!features.is_valid() || !fits(features.ptr(), layer)) return {};
  const Place place = place_of(module, layer, x, input.ptr(), features.ptr());
  if (!place.map.is_valid()) return {};
  PyObject* const out_channels = item(layer.names.ptr(), words().out_channels);
  nb::object given_norm;
  if (norm != nullptr) {
    const auto rows = nb::cast<const Map&>(place.map).view().out_rows;
    given_norm = norm_of(norm, rows, PyLong_AsLongLong(out_channels));
    if (!given_norm.is_valid()) return {};
  }
  const nb::object link = make_link(place.source.ptr(), layer.weight, layer.kept, layer.training,
                                    out_channels, place.map.ptr(), use, Py_None);
  if (given_norm.is_valid()) {
    normalize(link_in(link.ptr()), given_norm.ptr());
    if (relu) rectify(link_in(link.ptr()));
  }
  const nb::object output = stand_in(link_in(link.ptr()));
  if (!place.found.is_valid() || place.found.is_none())
    return holding(input.ptr(), output.ptr(), nullptr);
  PyObject* const arguments[] = {place.found.ptr(), x, output.ptr()};
  return made(nb::detail::vectorcall_method(words().output, arguments, 3, nullptr));
}

/// module(x)
PyObject* call_convolution(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Layer layer;
    const bool has_names = kwargs != nullptr && PyDict_Size(kwargs) > 0;
    if (!has_names && PyTuple_Size(args) == 1 && look_at_layer(self, layer)) {
      Use* const use = use_of(*layer.habit, layer.training, learns_now(), words().convolution);
      if (use->known == words().norm) {
        nb::object output = convolved(self, layer, PyTuple_GetItem(args, 0), use, nullptr, false);
        if (output.is_valid()) return output.release().ptr();
      }
    }
    const nb::object whole = made(PyObject_GetAttr(self, words().call_impl));
    return made(PyObject_Call(whole.ptr(), args, kwargs)).release().ptr();
  });
}

PyMethodDef call_method = {"_compiled_call_impl", method_of(&call_convolution),
                           METH_VARARGS | METH_KEYWORDS,
                           "What Module.__call__ asks first, as it asks what Module.compile made."};

PyObject* equip_convolution(PyObject*, PyObject* type) {
  return guarded([&] {
    const nb::object method =
        made(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type), &call_method));
    if (PyObject_SetAttr(type, words().compiled_call, method.ptr()) != 0) throw nb::python_error();
    return given(Py_None);
  });
}

/// waiting_convolution(convolution, x, norm, relu)
PyObject* together(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* convolution = nullptr;
    PyObject* x = nullptr;
    PyObject* norm = nullptr;
    int relu = 0;
    if (PyArg_ParseTuple(args, "OOOp", &convolution, &x, &norm, &relu) == 0)
      throw nb::python_error();
    Layer layer;
    if (!look_at_layer(convolution, layer)) return given(Py_None);
    const nb::object of_norm = names_of(norm);
    if (is_watched(of_norm.ptr())) return given(Py_None);
    const Words& word = words();
    Use* const use =
        use_of(*layer.habit, layer.training, learns_now(), relu != 0 ? word.relu : word.norm);
    nb::object output = convolved(convolution, layer, x, use, of_norm.ptr(), relu != 0);
    return output.is_valid() ? output.release().ptr() : given(Py_None);
  });
}

}   // namespace

void bind_convolution_calls(nb::module_& module) {
  static PyMethodDef functions[] = {
      {"equip_convolution", &equip_convolution, METH_O, "Gives spconv's convolution its call."},
      {"waiting_convolution", &together, METH_VARARGS,
       "waiting_convolution(convolution, x, norm, relu, /)\n--\n\nThe output of a convolution with "
       "the norm "
       "and the ReLU behind it in a container, which waits; None where they are to be called in "
       "Python."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
