// Keeps the links that wait in a list, which a link leaves when it is computed or gone.
#include "region.hpp"

#include <utility>

#include "../arguments.hpp"
#include "parts.hpp"

namespace pumice::python::recorder {

PyTypeObject* Region::type = nullptr;

namespace {

constexpr std::size_t kMostWaiting =
    200;   // more than a network has, fewer than calls may be nested

/// Takes all links out, without computing them.
void forget_links(Region& region) {
  while (region.first != nullptr)
    take_out(*region.first);
}

void clear(Region& region) {
  forget_links(region);
  PyObject* const held = region.held;
  region.held = nullptr;
  Py_XDECREF(held);
}

int visit_region(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Region*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->frame);
  Py_VISIT(self->held);
  for (Link* link = self->first; link != nullptr; link = link->after) {
    if (link->is_kept) Py_VISIT(object_of(link));
  }
  return 0;
}

int clear_region(PyObject* object) {
  auto* self = reinterpret_cast<Region*>(object);
  clear(*self);
  Py_CLEAR(self->frame);
  return 0;
}

void free_region(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear_region(object);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

bool is_at(int depth, PyObject* frame) {
  const nb::object number = made(PyLong_FromLong(depth));
  PyObject* const arguments[] = {number.ptr()};
  PyObject* found = nb::detail::vectorcall(parts().get_frame, arguments, 1, nullptr);
  if (found == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nb::python_error();
    PyErr_Clear();   // there are not as many now
    return false;
  }
  Py_DECREF(found);
  return found == frame;
}

/// How far above the caller the frame is, -1 where its call is over.
int depth_of(PyObject* frame) {
  const nb::object depth = call(parts().depth_of, {frame});
  return depth.ptr() == Py_None ? -1 : static_cast<int>(PyLong_AsLong(depth.ptr()));
}

PyObject* frame_of_region(PyObject*, PyObject*) {
  return guarded([] { return given_or_none(region().frame); });
}

PyObject* open_region(PyObject*, PyObject* frame) {
  return guarded([&] {
    clear(region());   // links of a call that was interrupted
    put(region().frame, frame == Py_None ? nullptr : frame);
    return given(Py_None);
  });
}

/// Takes out all links and returns a list of those that have to be computed, the last ones first:
/// they update statistics, or a tensor stands for them.
PyObject* taken(PyObject*, PyObject*) {
  return guarded([] {
    Region& the = region();
    nb::list needed;
    for (Link* link = the.last; link != nullptr; link = link->before) {
      if (!link->is_done && (link->is_kept || held(*link) != 0))
        needed.append(nb::borrow(object_of(link)));
    }
    forget_links(the);
    return needed.release().ptr();
  });
}

/// Weak references to the links whose convolution a tensor may still stand for.
PyObject* taken_again(PyObject*, PyObject*) {
  return guarded([] {
    PyObject* const held = region().held;
    region().held = nullptr;
    return held == nullptr ? made(PyList_New(0)).release().ptr() : held;
  });
}

PyObject* add_held(PyObject*, PyObject* link) {
  return guarded([&] {
    Region& the = region();
    if (the.held == nullptr) the.held = made(PyList_New(0)).release().ptr();
    const nb::object reference = made(PyWeakref_NewRef(link, nullptr));
    if (PyList_Append(the.held, reference.ptr()) != 0) throw nb::python_error();
    return given(Py_None);
  });
}

PyObject* settle_norm_in_python(PyObject*, PyObject* mean) {
  return guarded([&] {
    settle_norm(mean);
    return given(Py_None);
  });
}

PyObject* is_open_in_python(PyObject*, PyObject*) {
  return guarded([] { return given(is_open() ? Py_True : Py_False); });
}

}   // namespace

Region& region() {
  static PyObject* const name = word("pumice.nn.deferred.region");
  PyObject* const of_thread = PyThreadState_GetDict();
  PyObject* found = item(of_thread, name);
  if (found == nullptr) {
    const nb::object made_now = nb::steal(object_of(allocated<Region>(Region::type)));
    if (PyDict_SetItem(of_thread, name, made_now.ptr()) != 0) throw nb::python_error();
    found = made_now.ptr();
  }
  return *reinterpret_cast<Region*>(found);
}

bool is_open() {
  Region& the = region();
  if (the.frame != nullptr) {
    for (std::size_t i = 0; i < the.depths.size(); ++i) {
      if (!is_at(the.depths[i], the.frame)) continue;
      std::swap(the.depths[i], the.depths[0]);
      return true;
    }
    const int depth = depth_of(the.frame);
    if (depth >= 0) {
      the.depths = {depth, the.depths[0], the.depths[1]};
      return true;
    }
    // PyTorch's hooks do not run after a KeyboardInterrupt.
    Py_CLEAR(the.frame);
    clear(the);
  }
  made(PyObject_CallNoArgs(parts().watch));
  return false;
}

void wait_in(Region& region, Link& link) {
  if (region.count >= kMostWaiting) made(PyObject_CallNoArgs(parts().settle));
  link.region = &region;
  link.before = region.last;
  (region.last == nullptr ? region.first : region.last->after) = &link;
  region.last = &link;
  ++region.count;
}

void keep(Region& region, Link& link) {
  settle_norm(PyTuple_GetItem(link.norm, kMean));
  if (link.is_kept || link.region != &region) return;
  Py_INCREF(object_of(&link));
  link.is_kept = true;
}

void settle_norm(PyObject* mean) {
  for (Link* link = region().last; link != nullptr; link = link->before) {
    if (!link->is_kept || link->is_done || PyTuple_GetItem(link->norm, kMean) != mean) continue;
    result(*link);
    return;
  }
}

void take_out(Link& link) {
  Region* const region = link.region;
  if (region == nullptr) return;
  (link.before == nullptr ? region->first : link.before->after) = link.after;
  (link.after == nullptr ? region->last : link.after->before) = link.before;
  link.before = link.after = nullptr;
  link.region = nullptr;
  --region->count;
  if (!link.is_kept) return;
  link.is_kept = false;
  Py_DECREF(object_of(&link));
}

void bind_region(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot_of(&free_region)},
                                {Py_tp_traverse, slot_of(&visit_region)},
                                {Py_tp_clear, slot_of(&clear_region)},
                                {}};
  Region::type = type_of("pumice._C.Region", sizeof(Region), kMadeHere | Py_TPFLAGS_HAVE_GC, slots);
  static PyMethodDef functions[] = {
      {"region_frame", &frame_of_region, METH_NOARGS,
       "The frame of the outermost call in this thread, None outside of one."},
      {"open_region", &open_region, METH_O, "Starts one at a frame; None ends it."},
      {"waiting_links", &taken, METH_NOARGS,
       "Takes out all links that wait; those of them that have to be computed, the last ones "
       "first."},
      {"links_asked_again", &taken_again, METH_NOARGS,
       "Takes out the weak references to links whose convolution a tensor may stand for."},
      {"may_be_asked_again", &add_held, METH_O,
       "Adds a link whose convolution a tensor stands for."},
      {"settle_norm", &settle_norm_in_python, METH_O,
       "Computes the link that waits and updates this running mean."},
      {"region_is_open", &is_open_in_python, METH_NOARGS,
       "Whether a layer that is called now may wait."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
