// Finds the links that a result needs.
#include <algorithm>
#include <vector>

#include "../arguments.hpp"
#include "../sites.hpp"
#include "link.hpp"

namespace pumice::python::recorder {
namespace {

/// Appends the links that `link` needs and that are not computed, then itself.
void collect(Link& link, int walk, std::vector<Link*>& links) {
  link.mark = walk;
  for (PyObject* value : {link.source, link.second, link.residual}) {
    if (!is_link(value)) continue;
    Link& needed = link_in(value);
    if (!needed.is_done && needed.mark != walk) collect(needed, walk, links);
  }
  links.push_back(&link);
}

void* home_of_map(const Link& link) {
  return home_of(nb::cast<const Map&>(nb::handle(link.map))).native;
}

/// Whether the links are one chain, as most are: it has at most two inputs, all are called under
/// the same switches, and nothing but the chain takes what is inside of it.
bool is_one_chain(const std::vector<Link*>& links) {
  const Link& first = *links.front();
  const Link& last = *links.back();
  PyObject* given_second = nullptr;
  const PyObject* map = first.map;
  const void* const home = home_of_map(first);
  std::vector<int> takers(links.size());
  const auto place = [&](PyObject* value) {
    const auto found = std::find_if(links.begin(), links.end(),
                                    [&](Link* link) { return object_of(link) == value; });
    return found - links.begin();
  };
  const auto size = static_cast<std::ptrdiff_t>(links.size());
  for (const Link* link : links) {
    if (link->norm == nullptr || (link->early != nullptr && PyDict_Size(link->early) > 0) ||
        !(link->switches == first.switches))
      return false;
    if (link->map != map) {
      map = link->map;
      if (home_of_map(*link) != home) return false;
    }
    for (PyObject* value : {link->source, link->second, link->residual}) {
      if (value == nullptr || value == first.source) continue;
      if (const auto at = place(value); at < size) {
        ++takers[static_cast<std::size_t>(at)];
      } else if (given_second == nullptr) {
        given_second = value;
      } else if (value != given_second) {
        return false;
      }
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = *links[i];
    const int inside = &link == &last ? (1 << link.stage) - 1 : ~0;
    if ((held(link) & inside) != 0 || link.takers != takers[i]) return false;
  }
  for (Link* link : links)
    link->early_held = 0;
  return true;
}

/// needed_links(link) -> (the links that it needs and itself, in order, whether they are one chain)
PyObject* needed_links(PyObject*, PyObject* object) {
  return guarded([&] {
    static int walks = 0;
    if (!is_link(object)) {
      PyErr_SetString(PyExc_TypeError, "needed_links takes a link");
      throw nb::python_error();
    }
    std::vector<Link*> links;
    collect(link_in(object), ++walks, links);
    const bool is_one = is_one_chain(links);
    nb::object list = made(PyList_New(static_cast<Py_ssize_t>(links.size())));
    for (std::size_t i = 0; i < links.size(); ++i)
      PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), given(object_of(links[i])));
    return made(PyTuple_Pack(2, list.ptr(), is_one ? Py_True : Py_False)).release().ptr();
  });
}

}   // namespace

void bind_needed_links(nb::module_& module) {
  static PyMethodDef functions[] = {
      {"needed_links", &needed_links, METH_O,
       "needed_links(link, /)\n--\n\nThe links that a link needs and that are not computed, then "
       "itself; and "
       "whether they are one chain."},
      {}};
  add_functions(module, functions);
}

}   // namespace pumice::python::recorder
