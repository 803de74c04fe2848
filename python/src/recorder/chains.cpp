// What a chain of links is made of and runs on, and its call in evaluation.
#include <optional>
#include <vector>

#include "../arguments.hpp"
#include "../chain_calls.hpp"
#include "parts.hpp"
#include "ticket.hpp"

namespace pumice::python::recorder {
namespace {

class Filled {
 public:
  explicit Filled(Py_ssize_t size) : tuple_(made(PyTuple_New(size))) {}
  void add(PyObject* object) { PyTuple_SetItem(tuple_.ptr(), next_++, given(object)); }
  void add(const nb::object& object) { add(object.ptr()); }
  PyObject* ptr() const { return tuple_.ptr(); }

 private:
  nb::object tuple_;
  Py_ssize_t next_ = 0;
};

// Where things lie in the FoldedWeights of Python (nn/chain.py).
constexpr Py_ssize_t kPacked = 0;
constexpr Py_ssize_t kMadeFor = 1;
constexpr Py_ssize_t kMade = 3;

/// Raises the error for what was changed.
void refuse(const char* what) {
  static PyObject* const name = word("refuse_change");
  call(item(parts().running, name), {made(PyUnicode_FromString(what)).ptr()});
}

/// What a frozen layer in evaluation keeps packed; None for other layers.
nb::object packed_by(const Link& link) {
  const Words& names = words();
  if (link.training || made(PyObject_GetAttr(link.layout, names.frozen)).ptr() != Py_True)
    return nb::none();
  return made(PyObject_GetAttr(link.layout, names.packed));
}

/// The layout of a weight that kernels take as it lies; None where Python has to bring it to them.
nb::object layout_of(const Link& link) {
  const Words& names = words();
  const nb::object known = made(PyObject_GetAttr(link.layout, names.lies));
  if (PyTuple_Check(known.ptr()) && PyTuple_Size(known.ptr()) == 2) {
    const nb::object shape = made(PyObject_GetAttr(link.parameter, names.shape));
    if (is_equal(PyTuple_GetItem(known.ptr(), 0), shape.ptr()))
      return nb::borrow(PyTuple_GetItem(known.ptr(), 1));
  }
  static PyObject* const as_lies = word("as_lies");
  PyObject* const arguments[] = {link.layout, link.parameter};
  return made(nb::detail::vectorcall_method(as_lies, arguments, 2, nullptr));
}

/// The values of a link or a tensor that a chain takes; the link has to have been computed.
nb::object values_of(PyObject* value) {
  if (value == nullptr) return nb::none();
  if (!is_link(value)) return nb::borrow(value);
  Link& link = link_in(value);
  nb::object values = result(link);
  if (reinterpret_cast<PyObject*>(Py_TYPE(values.ptr())) != parts().Tensor)
    values = call(parts().plain, {values.ptr()});
  if (version_of(values.ptr()) != link.value_version) refuse("features");
  return values;
}

/// What a chain of links is made of and runs on.
struct Made {
  explicit Made(Py_ssize_t count)
      : name(3 * count),
        rows(count),
        plans(count),
        parameters(3 * count),
        running(3 * count),
        maps(count),
        layouts(count),
        packed(count) {}

  Filled name, rows, plans;
  nb::object first = nb::none();   // values
  nb::object second = nb::none();
  bool training = false;
  Filled parameters, running, maps, layouts;
  bool has_layouts = true;   // of all weights
  Filled packed;             // of each frozen layer, else None
  bool is_frozen = true;     // each layer
};

std::vector<Link*> links_in(PyObject* list) {
  std::vector<Link*> links;
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i)
    links.push_back(&link_in(PyList_GetItem(list, i)));
  return links;
}

/// Nothing where norms are in training and others are not, and for a link that takes three values
/// which it does not make.
std::optional<Made> made_of(const std::vector<Link*>& links) {
  Made all(static_cast<Py_ssize_t>(links.size()));
  all.training = trains(*links.front());
  PyObject* const first = links.front()->source;
  PyObject* second = nullptr;
  bool fits = true;
  for (const Link* link : links) {
    if (trains(*link) != all.training) return std::nullopt;
    if (const char* what = changed(*link)) refuse(what);
    // Values are numbered as `Code` numbers them; what was neither made here nor is the first is
    // the second that the chain is given.
    const auto number = [&](PyObject* value) -> long {
      if (value == nullptr) return -1;
      if (value == first) return 0;
      for (std::size_t i = 0; i < links.size() && links[i] != link; ++i) {
        if (object_of(links[i]) == value) return static_cast<long>(2 + i);
      }
      fits = fits && (second == nullptr || second == value);
      second = value;
      return 1;
    };
    const auto part = [&](NormPart at) { return PyTuple_GetItem(link->norm, at); };
    const nb::object row = made(
        Py_BuildValue("lllOOO", number(link->source), number(link->second), number(link->residual),
                      link->relu ? Py_True : Py_False, part(kEpsilon), part(kMomentum)));
    if (!fits) return std::nullopt;
    all.rows.add(row);
    all.parameters.add(link->parameter);
    all.parameters.add(part(kScale));
    all.parameters.add(part(kShift));
    all.running.add(part(kMean));
    all.running.add(part(kVariance));
    all.running.add(part(kBatches));
    all.maps.add(link->map);
    const nb::object packed = packed_by(*link);
    const nb::object layout = layout_of(*link);
    all.has_layouts = all.has_layouts && !layout.is_none();
    all.layouts.add(layout);
    all.is_frozen = all.is_frozen && !packed.is_none();
    all.packed.add(packed);
    all.plans.add(link->plans);
    all.name.add(row);
    all.name.add(made(PyLong_FromVoidPtr(link->layout)));
    all.name.add(link->plans);
  }
  all.first = values_of(first);
  all.second = values_of(second);
  return all;
}

/// chain_of(links) -> what a chain of them is made of and runs on; None as `made_of`.
PyObject* chain_of(PyObject*, PyObject* list) {
  return guarded([&]() -> PyObject* {
    const std::optional<Made> all = made_of(links_in(list));
    if (!all) return given(Py_None);
    return made(PyTuple_Pack(11, all->name.ptr(), all->rows.ptr(), all->plans.ptr(),
                             all->first.ptr(), all->second.ptr(),
                             all->training ? Py_True : Py_False, all->parameters.ptr(),
                             all->running.ptr(), all->maps.ptr(), all->layouts.ptr(),
                             all->is_frozen ? Py_True : Py_False))
        .release()
        .ptr();
  });
}

bool wants_gradient(const Made& all) {
  if (!learns_now()) return false;
  const auto wants = [](PyObject* tensor) { return tensor != Py_None && requires_grad(tensor); };
  if (wants(all.first.ptr()) || wants(all.second.ptr())) return true;
  for (PyObject* tuple : {all.parameters.ptr(), all.running.ptr()}) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
      if (wants(PyTuple_GetItem(tuple, i))) return true;
    }
  }
  return false;
}

nb::object in_type(const nb::object& tensor, PyObject* dtype) {
  static PyObject* const to = word("to");
  if (dtype == nullptr || tensor.is_none()) return tensor;
  PyObject* const arguments[] = {tensor.ptr(), dtype};
  return made(nb::detail::vectorcall_method(to, arguments, 2, nullptr));
}

/// The weights that a `Code` keeps of frozen layers, where they were made for what these keep
/// packed, for the type of the features and the stream; nothing where Python has to make them.
nb::object kept_weights(PyObject* code, const Made& all, PyObject* features, PyObject* numerics) {
  static PyObject* const weights = recorder::word("weights");
  const nb::object kept = made(PyObject_GetAttr(code, weights));
  if (!PyTuple_Check(kept.ptr())) return {};
  const auto part = [&](Py_ssize_t at) { return PyTuple_GetItem(kept.ptr(), at); };
  const nb::object now = call(parts().made_for, {features, numerics});
  if (!is_equal(part(kPacked), all.packed.ptr()) || !is_equal(part(kMadeFor), now.ptr())) return {};
  return nb::borrow(part(kMade));
}

/// Computes links that are one chain, called under the switches of now, in evaluation, of which
/// there is a `Code`, and where all layers are frozen, weights that it keeps; false where Python
/// has to look closer, which is seldom. The value is the last link's.
bool infer_chain(nb::handle list) {
  const std::vector<Link*> links = links_in(list.ptr());
  Link& last = *links.back();
  if (last.norm == nullptr || trains(last) || links.front()->early_held != 0 ||
      last.early_held != 0 || (last.early != nullptr && PyDict_Size(last.early) > 0))
    return false;
  const Words& word = words();
  const nb::object habit = made(PyObject_GetAttr(links.front()->layout, word.habit));
  const std::optional<Made> all = made_of(links);
  if (!all || all->training || !(all->has_layouts || all->is_frozen) ||
      Py_TYPE(habit.ptr()) != Habit::type)
    return false;
  PyObject* const known =
      PyDict_GetItemWithError(reinterpret_cast<Habit*>(habit.ptr())->codes, all->name.ptr());
  if (known == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (known == nullptr || wants_gradient(*all)) return false;
  const nb::object code = nb::borrow(known);   // what Python runs below may take it from the codes
  static PyObject* const chain = recorder::word("c");
  const nb::object compiled = made(PyObject_GetAttr(code.ptr(), chain));
  PyObject* const dtype = last.switches.autocast;
  const nb::object features = in_type(all->first, dtype);
  const nb::object numerics = call(parts().numerics, {features.ptr()});
  const auto numeric = [&](Py_ssize_t at) {
    return PyTuple_GetItem(numerics.ptr(), at) == Py_True;
  };
  const ChainCall given{.features = features,
                        .other = in_type(all->second, dtype),
                        .chain = nb::cast<nn::Chain&>(compiled),
                        .maps = all->maps.ptr(),
                        .parameters = all->parameters.ptr(),
                        .running = all->running.ptr(),
                        .rounds = dtype != nullptr,
                        .numerics = {.deterministic = numeric(0), .tf32 = numeric(1)}};
  nb::object value;
  if (all->is_frozen) {
    // Who records a graph has to hear of each use of what is kept.
    if (PyList_Size(parts().readers) > 0) return false;
    const nb::object weights = kept_weights(code.ptr(), *all, features.ptr(), numerics.ptr());
    if (!weights.is_valid()) return false;
    value = infer_kept(given, weights);
  } else {
    value = infer_once(given, all->layouts.ptr());
  }
  if (value.is_none()) return false;
  put(last.value, value.ptr());
  last.value_version = version_of(value.ptr());
  return true;
}

/// is_as_called(link)
PyObject* is_as_called(PyObject*, PyObject* object) {
  return guarded([&] {
    const Link& link = link_in(object);
    return given(!has_hooks_on_saved() &&
                         mode_now(link.is_cuda, link.device, link.dtype) == link.switches
                     ? Py_True
                     : Py_False);
  });
}

/// finish_links(links, error)
PyObject* finish_links(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *list, *error;
    if (PyArg_ParseTuple(args, "OO", &list, &error) == 0) throw nb::python_error();
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      Link& link = link_in(PyList_GetItem(list, i));
      if (error != Py_None) put(link.error, error);
      finish(link);
    }
    return given(Py_None);
  });
}

}   // namespace

void bind_chains(nb::module_& module) {
  static PyMethodDef functions[] = {
      {"chain_of", &chain_of, METH_O,
       "chain_of(links, /)\n--\n\n(name, rows, plans, first, second, training, parameters, "
       "running, maps, layouts, whether all are frozen and in evaluation) of a chain of these, "
       "whose inputs were computed; None where only some of the "
       "norms are in training, or a link takes three values that are not made here."},
      {"is_as_called", &is_as_called, METH_O,
       "Whether PyTorch's switches are those under which a link was called, and nothing watches "
       "tensors "
       "that are saved."},
      {"finish_links", &finish_links, METH_VARARGS,
       "finish_links(links, error, /)\n--\n\nSays that links are done, and frees what they took."},
      {}};
  add_functions(module, functions);
  module.def(
      "infer_chain", &infer_chain, nb::arg("links"),
      "Computes a chain in evaluation without gradients; False where Python has to look closer.");
}

}   // namespace pumice::python::recorder
