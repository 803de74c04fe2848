// Coordinate sets and kernel maps as Python holds them.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pumice/maps/map_cache.hpp>

#include "framework.hpp"

namespace pumice::python {

/// The maps of everything that was made from one set of coordinates. A set keeps its family, and a
/// map that of its sets, so maps live as long as anyone can ask for them again.
struct Family {
  std::shared_ptr<MapCache> maps = std::make_shared<MapCache>();
  std::mutex mutex;

  Family() = default;
  /// With maps that a plan made.
  explicit Family(std::shared_ptr<MapCache> made) : maps(std::move(made)) {}

  /// Runs `work` on the cache, one thread at a time. Who has to wait gives the GIL away where it
  /// has it, since the one it waits for may need it to allocate.
  template <class Work> auto locked(bool holds_gil, Work&& work) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock() && holds_gil) {
      const GilReleased released;
      lock.lock();
    } else if (!lock.owns_lock()) {
      lock.lock();
    }
    return work(*maps);
  }
};

struct Sites {
  CoordinateSetPtr set;
  std::shared_ptr<Family> family;

  std::int64_t rows() const { return set->rows().capacity(); }
};

/// A map in one direction: a transposed one goes from its `out` to its `in`.
struct Map {
  KernelMapPtr map;
  std::shared_ptr<Family> family;
  bool transposed = false;

  KernelMapView view() const { return transposed ? pumice::transposed(map->view()) : map->view(); }
  Sites in() const { return {transposed ? map->out() : map->in(), family}; }
  Sites out() const { return {transposed ? map->in() : map->out(), family}; }
};

/// The stream that their memory belongs to.
inline StreamView home_of(const Sites& sites) {
  return sites.set->stream();
}
inline StreamView home_of(const Map& map) {
  return map.map->in()->stream();
}

/// One number an axis.
Axes axes_of(const std::vector<std::int32_t>& values, const char* name);
std::vector<std::int32_t> list_of(const Axes& values, int dimension);

void bind_coords(nb::module_& module);
void bind_maps(nb::module_& module);
void bind_map_plan(nb::module_& module);
void bind_module_state(nb::module_& module);
void bind_tokens(nb::module_& module);
void bind_plans(nb::module_& module);
void bind_convolution(nb::module_& module);
void bind_normalization(nb::module_& module);
void bind_chain(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_weight_layouts(nb::module_& module);
void bind_pooling(nb::module_& module);
void bind_dense(nb::module_& module);
void bind_points(nb::module_& module);
void bind_rows(nb::module_& module);
void bind_weights(nb::module_& module);

}   // namespace pumice::python
