// The links that wait in one thread, within one call of the outermost module
// (python/pumice/nn/deferred/region.py).
#pragma once

#include <array>
#include <cstddef>

#include "link.hpp"

namespace pumice::python::recorder {

/// `frame`: the frame of the outermost call, null outside of one. `depths`: how many frames above
/// `is_open` it was found lately: layers of one loop are called at one depth. `first`, `last`: the
/// links that wait, in the order of calls. `held`: weak references to links whose convolution may
/// have to be computed again.
struct Region {
  PyObject_HEAD PyObject* frame;
  std::array<int, 3> depths;
  Link* first;
  Link* last;
  std::size_t count;
  PyObject* held;

  static PyTypeObject* type;
};

/// Of this thread; borrowed.
Region& region();

/// Whether a layer that is called now may wait.
bool is_open();
/// Adds a link that waits; where there are too many, those that have to be are computed.
void wait_in(Region& region, Link& link);
/// Adds a link whose norm is in training, which is computed even if nothing reads it; an earlier
/// one that updates the same statistics is computed first.
void keep(Region& region, Link& link);
/// Computes the link that waits and updates this running mean.
void settle_norm(PyObject* mean);
/// Removes a link, which may be the end of it.
void take_out(Link& link);

void bind_region(nb::module_& module);

}   // namespace pumice::python::recorder
