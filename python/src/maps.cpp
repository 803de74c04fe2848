// Kernel windows, and the maps that a family finds or builds.
#include <algorithm>
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/error.hpp>
#include <pumice/formats/pass_memory.hpp>

#include "arguments.hpp"
#include "framework.hpp"
#include "framework_allocator.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using List = std::vector<std::int32_t>;

/// The window of a layer, and what passes that begin with this layer ask for.
struct LayerWindow {
  KernelWindow kernel;
  PassMemory passes{};
};

LayerWindow make_window(const List& size, const List& stride, const List& padding,
                        const List& dilation, bool cross, const List& output_padding) {
  KernelWindow window{.dimension = static_cast<int>(size.size()),
                      .shape = cross ? KernelShape::hypercross : KernelShape::hypercube,
                      .size = axes_of(size, "kernel_size"),
                      .stride = axes_of(stride, "stride"),
                      .padding = axes_of(padding, "padding"),
                      .dilation = axes_of(dilation, "dilation"),
                      .output_padding = axes_of(output_padding, "output_padding")};
  for (const List* values : {&stride, &padding, &dilation, &output_padding}) {
    PUMICE_EXPECTS(values->size() == size.size(), "kernel_size has ", size.size(),
                   " axes, and stride, padding, dilation and output_padding ", stride.size(), ", ",
                   padding.size(), ", ", dilation.size(), " and ", output_padding.size(),
                   ": give as many");
  }
  // Axes beyond the dimension say nothing: one value makes equal windows compare equal.
  for (auto axis = size.size(); axis < window.size.size(); ++axis)
    window.padding[axis] = window.output_padding[axis] = 0;
  validate(window);
  return {window};
}

/// Finds a map of `sites`, or builds it. If it is the first one there, a pass begins with it.
template <class Find>
Map find(const Sites& sites, const LayerWindow& window, Find&& find_or_build) {
  const Call call(sites.set->device(), home_of(sites));
  const auto work = [&](MapCache& maps) {
    if (!call.on_cpu() && PassMemory::begins(maps)) {
      const bool learns = records_gradients();
      if (learns) release_inference_memory(sites.set->device());
      const InferenceMemory memory(!learns);
      window.passes.begin(
          maps, sites.set, call.stream(),
          learns ? PassMemory::Followed::by_gradients : PassMemory::Followed::by_nothing);
    }
    return find_or_build(maps);
  };
  return {call.run([&] { return sites.family->locked(!call.on_cpu(), work); }), sites.family};
}

/// What each layer asks for again in each pass. A map that is there needs neither a stream nor
/// memory: whatever reads it waits for its home.
Map submanifold(const Sites& sites, const LayerWindow& window) {
  const MapCache::Key key{MapCache::Kind::submanifold, sites.set, nullptr, window.kernel};
  const KernelMapPtr known = sites.family->locked(true, [&](const MapCache& maps) {
    const auto entry = std::ranges::find(maps.entries(), key, &MapCache::Entry::key);
    return entry == maps.entries().end() ? nullptr : entry->map;
  });
  if (known != nullptr) return {known, sites.family};
  return find(sites, window,
              [&](MapCache& maps) { return maps.submanifold(sites.set, window.kernel); });
}

/// Where a strided map leads, without its pairs.
Sites strided_sites(const Sites& sites, const LayerWindow& window, bool cell) {
  const StridedOutputs outputs = cell ? StridedOutputs::cell : StridedOutputs::dilating;
  const Call call(sites.set->device(), home_of(sites));
  return {call.run([&] { return strided_set(sites.set, window.kernel, outputs); }), sites.family};
}

Map strided(const Sites& sites, const LayerWindow& window, bool cell) {
  const StridedOutputs outputs = cell ? StridedOutputs::cell : StridedOutputs::dilating;
  return find(sites, window,
              [&](MapCache& maps) { return maps.strided(sites.set, window.kernel, outputs); });
}

/// A strided map of the same window, read from the other side, has these very pairs.
Map transposed_to(const Sites& sites, const Sites& fine, const LayerWindow& window) {
  const KernelMapPtr led_here = sites.family->locked(
      true, [&](MapCache& maps) { return maps.strided_to(sites.set, window.kernel, fine.set); });
  if (led_here != nullptr) return {led_here, sites.family, true};
  return find(sites, window,
              [&](MapCache& maps) { return maps.transposed(sites.set, fine.set, window.kernel); });
}

Map generative(const Sites& sites, const LayerWindow& window) {
  return find(sites, window,
              [&](MapCache& maps) { return maps.generative(sites.set, window.kernel); });
}

/// The sites from which a strided convolution of this stride led to these; none where none did.
std::optional<Sites> finer_sites(const Sites& sites, const List& stride) {
  const KernelMapPtr led_here =
      sites.family->locked(true, [&](MapCache& maps) { return maps.strided_to(sites.set); });
  if (led_here == nullptr) return std::nullopt;
  const KernelWindow& window = led_here->window();
  if (list_of(window.stride, window.dimension) != stride) return std::nullopt;
  return Sites{led_here->in(), sites.family};
}

/// The strided map of `window` that led to these sites, from the other side.
Map inverse(const Sites& sites, const LayerWindow& window, const Sites* fine) {
  const KernelMapPtr led_here = sites.family->locked(true, [&](MapCache& maps) {
    return maps.strided_to(sites.set, window.kernel, fine == nullptr ? nullptr : fine->set);
  });
  PUMICE_EXPECTS(led_here != nullptr, "no convolution of window ", to_string(window.kernel),
                 " led to these sites, so there is none to invert: use a transposed convolution "
                 "for sites of another origin");
  return {led_here, sites.family, true};
}

bool is_same_map(const Map& a, const Map& b) {
  return a.map == b.map && a.transposed == b.transposed;
}

nb::list all_maps(const Sites& sites) {
  nb::list result;
  sites.family->locked(true, [&](MapCache& maps) {
    for (const KernelMapPtr& map : maps.maps())
      result.append(Map{map, sites.family});
    return 0;
  });
  return result;
}

}   // namespace

void bind_maps(nb::module_& module) {
  nb::class_<LayerWindow>(module, "Window", "The shape of a layer's kernel.")
      .def(nb::new_(by_name(&make_window,
                            {Argument{"kernel_size"}, Argument{"stride"}, Argument{"padding"},
                             Argument{"dilation"}, Argument{"cross"}, Argument{"output_padding"}})),
           "size"_a.none(), "stride"_a.none(), "padding"_a.none(), "dilation"_a.none(),
           "cross"_a.none(), "output_padding"_a.none())
      .def_prop_ro("volume", [](const LayerWindow& window) { return window.kernel.volume(); })
      .def_prop_ro("dimension", [](const LayerWindow& window) { return window.kernel.dimension; })
      .def("offsets",
           [](const LayerWindow& window) {
             std::vector<List> result;
             for (const Axes& offset : window.kernel.offsets())
               result.push_back(list_of(offset, window.kernel.dimension));
             return result;
           })
      .def("__eq__",
           [](const LayerWindow& a, const LayerWindow& b) { return a.kernel == b.kernel; })
      .def("__repr__",
           [](const LayerWindow& window) { return nb::str(to_string(window.kernel).c_str()); });
  define(
      module, "submanifold_window",
      [](const List& size, const List& dilation) {
        KernelWindow window =
            submanifold_window(static_cast<int>(size.size()), axes_of(size, "kernel_size"),
                               axes_of(dilation, "dilation"));
        for (auto axis = size.size(); axis < window.size.size(); ++axis) {
          window.size[axis] = window.stride[axis] = window.dilation[axis] = 1;
          window.padding[axis] = 0;
        }
        validate(window);
        return LayerWindow{window};
      },
      "size"_a, "dilation"_a);

  nb::class_<Map>(module, "Map", "Which input row meets which output row through which offset.")
      .def_prop_ro("in_sites", &Map::in)
      .def_prop_ro("out_sites", &Map::out)
      .def_prop_ro(
          "home",
          [](const Map& map) { return reinterpret_cast<std::uintptr_t>(home_of(map).native); },
          "The stream that its memory belongs to, as a number.")
      .def_prop_ro("in_rows", [](const Map& map) { return map.view().in_rows; })
      .def_prop_ro("out_rows", [](const Map& map) { return map.view().out_rows; })
      .def_prop_ro("offsets", [](const Map& map) { return map.view().offsets; })
      .def_prop_ro(
          "pairs", [](const Map& map) { return map.view().pairs(); },
          "0 on a device, where only the device knows.")
      .def_prop_ro("window", [](const Map& map) { return LayerWindow{map.map->window()}; })
      .def("is_same", by_name(&is_same_map, {Argument{"self"}, Argument{"other"}}),
           "other"_a.none())
      .def("transposed", [](const Map& map) {
        return Map{map.map, map.family, !map.transposed};
      });
  define(module, "submanifold_map", &submanifold, "sites"_a, "window"_a);
  define(module, "strided_sites", &strided_sites, "sites"_a, "window"_a, "cell"_a,
         "Where strided_map leads, in key order, without its pairs.");
  define(module, "strided_map", &strided, "sites"_a, "window"_a, "cell"_a);
  define(module, "transposed_map", &transposed_to, "sites"_a, "fine"_a, "window"_a);
  define(module, "generative_map", &generative, "sites"_a, "window"_a);
  define(module, "inverse_map", &inverse, "sites"_a, "window"_a, "fine"_a.none());
  define(module, "finer_sites", &finer_sites, "sites"_a, "stride"_a,
         "From where a strided convolution of this stride led to these sites; None: from nowhere.");
  define(module, "maps_of", &all_maps, "sites"_a);
}

}   // namespace pumice::python
