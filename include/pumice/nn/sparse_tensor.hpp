// What flows between layers: sites, their features, and the kernel maps already built for them.
#pragma once

#include <memory>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/maps/map_cache.hpp>
#include <pumice/nn/tape.hpp>

namespace pumice::nn {

/// Small: a copy shares everything. Layers take it by value, so a caller that moves its tensor in
/// lets the features go as soon as no layer needs them.
struct SparseTensor {
  CoordinateSetPtr coordinates;
  Tensor features;                  // [coordinates->rows().capacity(), C]
  std::shared_ptr<MapCache> maps;   // shared by all tensors of one forward pass
  NodePtr node{};                   // where the gradient of `features` gathers; null: not wanted
  /// Whether rows past a count that only the device knows may hold what lay there before. Kernels
  /// that know the count neither read nor write them; see `close_tail`.
  bool has_open_tail = false;

  SparseTensor() = default;
  /// The input of a network, with a map cache of its own. UserError when the rows differ.
  SparseTensor(CoordinateSetPtr sites, Tensor values,
               std::shared_ptr<MapCache> cache = std::make_shared<MapCache>());

  std::int64_t rows() const { return features.rows(); }
  std::int64_t channels() const { return features.extent(1); }
  DType dtype() const { return features.dtype(); }

  /// A tensor on other sites, or with other features, that goes on with the same maps.
  SparseTensor with(Tensor values, NodePtr gradient_node) const;
  SparseTensor with(CoordinateSetPtr sites, Tensor values, NodePtr gradient_node) const;
};

/// Before a layer that goes over all rows there is room for: those past the count become zeros,
/// where they may hold anything else. What such a layer makes has a closed tail too.
void close_tail(SparseTensor& x);

/// Asks for the gradient of a network's input: makes its node a leaf, and returns it.
NodePtr require_gradient(SparseTensor& input);

}   // namespace pumice::nn
