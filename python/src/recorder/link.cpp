// Makes links and lets go of them.
#include "link.hpp"

#include <algorithm>

#include "../sites.hpp"
#include "parts.hpp"
#include "region.hpp"
#include "ticket.hpp"

namespace pumice::python::recorder {

namespace {

std::int64_t rows_of(PyObject* map) {
  return nb::cast<const Map&>(nb::handle(map)).view().out_rows;
}

void take(Link& link, PyObject*& member, PyObject* value) {
  member = given(value);
  if (!is_link(value)) return;
  Link& of = link_in(value);
  if (of.users == nullptr) of.users = new std::vector<Link*>;
  of.users->push_back(&link);
  ++of.takers;
}

/// What `of`, a join, was made of becomes the source of a link.
void take_parts(Link& link, const Link& of) {
  take(link, link.source, of.source);
  take(link, link.second, of.second);
  link.source_version = of.source_version;
  link.second_version = of.second_version;
}

/// Rows or channels of a link or a tensor.
std::int64_t extent_of(PyObject* value, int axis) {
  if (is_link(value)) return axis == 0 ? link_in(value).rows : link_in(value).channels;
  const nb::object shape = made(PyObject_GetAttr(value, words().shape));
  return PyLong_AsLongLong(PyTuple_GetItem(shape.ptr(), axis));
}

bool wants_gradient(PyObject* value) {
  return is_link(value) ? link_in(value).requires_grad : requires_grad(value);
}

}   // namespace

nb::object make_link(PyObject* source, PyObject* parameter, PyObject* layout, bool training,
                     PyObject* out_channels, PyObject* map, Use* use, PyObject* plans) {
  const nb::object owner = nb::steal(object_of(allocated<Link>(Link::type)));
  Link& link = link_in(owner.ptr());
  link.parameter = given(parameter);
  link.layout = given(layout);
  link.plans = given(plans);
  link.map = given(map);
  link.use = reinterpret_cast<Use*>(given(object_of(use)));
  link.training = training;
  nb::object values;   // of a source that was called under other switches
  if (is_link(source)) {
    Link& before = link_in(source);
    link.is_cuda = before.is_cuda;
    link.device = given(before.device);
    link.dtype = given(before.dtype);
    link.switches = mode_now(link.is_cuda, link.device, link.dtype);
    if (link.switches == before.switches) {
      link.mode = given(before.mode);
    } else {
      values = result(before);
      source = values.ptr();
    }
  } else {
    link.is_cuda = made(PyObject_GetAttr(source, words().is_cuda)).ptr() == Py_True;
    link.device = made(PyObject_GetAttr(source, words().device)).release().ptr();
    link.dtype = made(PyObject_GetAttr(source, words().dtype)).release().ptr();
    link.switches = mode_now(link.is_cuda, link.device, link.dtype);
  }
  if (link.mode == nullptr) link.mode = tuple_of(link.switches).release().ptr();
  if (is_link(source) && is_join(link_in(source)) && !link_in(source).is_done) {
    take_parts(link, link_in(source));
  } else {
    if (!is_link(source)) link.source_version = version_of(source);
    take(link, link.source, source);
  }
  link.channels = PyLong_AsLongLong(out_channels);
  link.rows = rows_of(map);
  link.shape = size_of(link.rows, link.channels).release().ptr();
  if (link.switches.autocast != nullptr) put(link.dtype, link.switches.autocast);
  link.learns = link.switches.learns;
  link.requires_grad = link.learns && (wants_gradient(source) || requires_grad(parameter));
  link.version = version_of(parameter);
  wait_in(region(), link);
  return owner;
}

nb::object make_join(PyObject* left, PyObject* right, Use* use) {
  const nb::object owner = nb::steal(object_of(allocated<Link>(Link::type)));
  Link& link = link_in(owner.ptr());
  const Link& like = link_in(is_link(left) ? left : right);
  link.stage = kJoined;
  link.use = reinterpret_cast<Use*>(given(object_of(use)));
  link.is_cuda = like.is_cuda;
  link.device = given(like.device);
  link.dtype = given(like.dtype);
  link.switches = like.switches;
  link.mode = given(like.mode);
  link.learns = like.learns;
  link.requires_grad = link.learns && (wants_gradient(left) || wants_gradient(right));
  link.rows = extent_of(left, 0);
  link.channels = extent_of(left, 1) + extent_of(right, 1);
  link.shape = size_of(link.rows, link.channels).release().ptr();
  if (!is_link(left)) link.source_version = version_of(left);
  if (!is_link(right)) link.second_version = version_of(right);
  take(link, link.source, left);
  take(link, link.second, right);
  wait_in(region(), link);
  return owner;
}

void let_go(Link& link, PyObject*& member) {
  PyObject* const value = member;
  member = nullptr;
  if (is_link(value)) {
    Link& of = link_in(value);
    of.users->erase(std::find(of.users->begin(), of.users->end(), &link));
    if (is_join(link)) --of.takers;   // what took its parts took them from their own links
  }
  Py_XDECREF(value);
}

void normalize(Link& link, PyObject* norm) {
  if (!PyTuple_Check(norm) || PyTuple_Size(norm) != kNormParts) {
    PyErr_SetString(PyExc_TypeError, "a norm is a tuple of eight");
    throw nb::python_error();
  }
  link.stage = kNormed;
  put(link.norm, norm);
  for (const int part : {kMean, kVariance, kScale, kShift})
    link.norm_versions[static_cast<std::size_t>(part)] = version_of(PyTuple_GetItem(norm, part));
  if (link.learns && !link.requires_grad)
    link.requires_grad = requires_grad(PyTuple_GetItem(norm, kScale)) ||
                         requires_grad(PyTuple_GetItem(norm, kShift));
  if (trains(link)) keep(region(), link);
}

void add(Link& link, PyObject* residual) {
  link.stage = kSummed;
  take(link, link.residual, residual);
  if (link.learns && !link.requires_grad) link.requires_grad = wants_gradient(residual);
  if (!is_link(residual)) link.residual_version = version_of(residual);
}

bool trains(const Link& link) {
  return link.norm != nullptr && PyTuple_GetItem(link.norm, kTrains) == Py_True;
}

int held(const Link& link) {
  int stages = 0;
  for (const Ticket* ticket = link.tickets; ticket != nullptr; ticket = ticket->after)
    stages |= 1 << ticket->stage;
  return stages;
}

nb::object result(Link& link) {
  const nb::object owner = nb::borrow(object_of(&link));
  if (!link.is_done) call(item(parts().running, words().compute), {owner.ptr()});
  if (link.error != nullptr) {
    const nb::object kind = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(link.error)));
    PyErr_SetObject(kind.ptr(), link.error);
    throw nb::python_error();
  }
  if (link.value == nullptr) {
    PyErr_SetString(PyExc_AssertionError,
                    "no tensor stands for the result of a link inside of a chain");
    throw nb::python_error();
  }
  return nb::borrow(link.value);
}

void before_a_change(Link& link) {
  if (link.users == nullptr) return;
  std::vector<nb::object> users;
  for (Link* user : *link.users)
    users.push_back(nb::borrow(object_of(user)));
  for (const nb::object& user : users) {
    if (!link_in(user.ptr()).is_done) result(link_in(user.ptr()));
  }
}

void finish(Link& link) {
  const nb::object owner = nb::borrow(object_of(&link));
  link.is_done = true;
  take_out(link);
  let_go(link, link.source);
  let_go(link, link.second);
  let_go(link, link.residual);
}

const char* changed(const Link& link) {
  if (!is_join(link) && link.version != version_of(link.parameter)) return "weight";
  const auto has_changed = [](PyObject* value, long version) {
    return value != nullptr && Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(parts().Tensor) &&
           version_of(value) != version;
  };
  if (has_changed(link.source, link.source_version) ||
      has_changed(link.second, link.second_version) ||
      has_changed(link.residual, link.residual_version))
    return "features";
  if (link.norm == nullptr) return nullptr;
  const bool moves = trains(link);   // its statistics may change then
  for (const int part : {kMean, kVariance, kScale, kShift}) {
    if (moves && part < kScale) continue;
    if (link.norm_versions[static_cast<std::size_t>(part)] !=
        version_of(PyTuple_GetItem(link.norm, part)))
      return "norm";
  }
  return nullptr;
}

nb::object size_of(std::int64_t rows, std::int64_t channels) {
  struct Known {
    std::int64_t rows = -1;
    std::int64_t channels = -1;
    PyObject* size = nullptr;
  };
  static std::array<Known, 32> known{};
  Known& entry = known[static_cast<std::size_t>(rows * 31 + channels) % known.size()];
  if (entry.size == nullptr || entry.rows != rows || entry.channels != channels) {
    const nb::object pair =
        made(Py_BuildValue("(LL)", static_cast<long long>(rows), static_cast<long long>(channels)));
    PyObject* const size = call(parts().Size, {pair.ptr()}).release().ptr();
    Py_XDECREF(entry.size);
    entry = {.rows = rows, .channels = channels, .size = size};
  }
  return nb::borrow(entry.size);
}

}   // namespace pumice::python::recorder
