// A computation that waits: relu(norm(convolution(source)) + residual), as far as it was asked for;
// or channels of two results side by side.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "python_object.hpp"
#include "switches.hpp"
#include "use.hpp"

namespace pumice::python::recorder {

struct Region;
struct Ticket;

/// Which operations have been added. A join is a link without a convolution, to which nothing is
/// added.
enum Stage : int { kConvolved, kNormed, kSummed, kRectified, kJoined };

/// What else `norm` holds, in the order of torch.nn.functional.batch_norm.
enum NormPart {
  kMean,
  kVariance,
  kScale,
  kShift,
  kTrains,
  kMomentum,
  kEpsilon,
  kBatches,
  kNormParts
};

/// python/pumice/nn/deferred/links.py says what the members mean.
struct Link {
  PyObject_HEAD PyObject* parameter;
  PyObject* layout;
  PyObject* plans;
  PyObject* map;
  Use* use;
  PyObject* mode;
  PyObject* source;     // a link or a tensor; null once it is computed
  PyObject* second;     // likewise; its channels come behind those of the source
  PyObject* residual;   // likewise
  PyObject* norm;       // a tuple, or null
  PyObject* shape;
  PyObject* device;
  PyObject* dtype;
  PyObject* value;
  PyObject* error;
  PyObject* again;
  PyObject* early;
  PyObject* weak_references;

  Mode switches;
  std::int64_t rows;
  std::int64_t channels;
  long version;
  long source_version;
  long second_version;
  long residual_version;
  long value_version;
  std::array<long, 4> norm_versions;   // in the order of the norm's parts

  std::vector<Link*>* users;   // those that are not computed; each keeps this one alive
  int takers;                  // how many there have been, without joins that are gone
  Ticket* tickets;             // of the tensors that stand for its results
  int stage;
  int early_held;
  int mark;   // of the walk that saw it last
  bool relu, is_done, is_cuda, learns, requires_grad, training;

  // Its place among those that wait. The region keeps those alive whose norms move statistics.
  Region* region;
  Link* before;
  Link* after;
  bool is_kept;

  static PyTypeObject* type;
};

inline bool is_link(PyObject* object) {
  return object != nullptr && Py_TYPE(object) == Link::type;
}
inline Link& link_in(PyObject* object) {
  return *reinterpret_cast<Link*>(object);
}
inline bool is_join(const Link& link) {
  return link.stage == kJoined;
}

/// A convolution of `source` through `map`, a link that waits. Of a join it takes both parts, so
/// that the join is made only where somebody else asks for it.
nb::object make_link(PyObject* source, PyObject* parameter, PyObject* layout, bool training,
                     PyObject* out_channels, PyObject* map, Use* use, PyObject* plans);
/// The channels of two links or tensors [rows, …] side by side, one of which waits; all were called
/// under the switches of now, and have one type.
nb::object make_join(PyObject* left, PyObject* right, Use* use);
/// Adds a batch norm: a tuple of `kNormParts`.
void normalize(Link& link, PyObject* norm);
/// Adds a sum with a link or a tensor of its shape.
void add(Link& link, PyObject* residual);
inline void rectify(Link& link) {
  link.stage = kRectified;
  link.relu = true;
}

/// The stages whose results tensors still stand for: a bit for each.
int held(const Link& link);
/// Its result, computed if it is not there yet.
nb::object result(Link& link);
/// Computes the links that take its result, before that is changed in place.
void before_a_change(Link& link);
/// Empties its source, second or residual, which no longer lists it among its users.
void let_go(Link& link, PyObject*& member);
/// Says that it is done, and lets go of what it was computed from.
void finish(Link& link);
/// What was changed in place since it was given: null, or a word for an error.
const char* changed(const Link& link);

bool trains(const Link& link);

/// torch.Size of [rows, channels].
nb::object size_of(std::int64_t rows, std::int64_t channels);

void bind_links(nb::module_& module);

}   // namespace pumice::python::recorder
