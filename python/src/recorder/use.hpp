// What was done to a layer's output in earlier passes (python/pumice/nn/deferred/uses.py).
#pragma once

#include <array>
#include <cstddef>

#include "python_object.hpp"
#include "words.hpp"

namespace pumice::python::recorder {

/// What is done to one result. `known`: a kind, null before the first time; "take" for what leaves
/// the result as it is, so that any number of them may follow each other (a join with another one,
/// a product with a matrix, a sum onto another one). `then`: the use of the result of that; after
/// "store", of the same result again. `joined`: the use of its join with another result.
struct Use {
  PyObject_HEAD PyObject* kind;
  PyObject* known;
  Use* then;
  Use* joined;
  bool is_unseen;      // of a result that only layers see: nothing to learn
  bool is_looked_at;   // whether the module that called for what was done was looked for

  static PyTypeObject* type;
};

/// Of kind `kind`.
nb::object make_use(PyObject* kind, bool is_unseen = false);
/// Records that `what` was done; `then` (borrowed), or null where that is not followed any further,
/// or followed elsewhere (`joined`, the habit of a matrix).
Use* note(Use& use, PyObject* what);
/// Whether what follows is an operation that can be added to a link.
inline bool leads_on(const Use& use) {
  return use.known != nullptr && use.known != words().other;
}

/// The uses of the outputs of one layer: separate ones for training and evaluation, with and
/// without gradients, and by what its container did last (a convolution, a norm, a ReLU).
struct Habit {
  PyObject_HEAD std::array<Use*, 12> uses;
  PyObject* codes;   // chains that begin with this layer, by what they are made of

  static PyTypeObject* type;
};

/// Borrowed.
Use* use_of(Habit& habit, bool training, bool learns, PyObject* kind);

/// Adds the types to the module.
void bind_uses(nb::module_& module);

}   // namespace pumice::python::recorder
