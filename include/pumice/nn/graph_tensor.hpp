// What flows between layers of graphs: features of nodes. Layers take the graph beside them, since
// all of a network share one; they time nothing (Context::profile).
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/nn/tape.hpp>

namespace pumice::nn {

/// Small: a copy shares everything.
struct GraphTensor {
  Tensor features;   // [nodes, C]
  NodePtr node{};    // where the gradient of `features` gathers; null: not wanted
};

}   // namespace pumice::nn
