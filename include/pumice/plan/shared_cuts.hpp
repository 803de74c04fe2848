// Plans of layers that run on the same maps: what `choose` decides layer by layer, looked at
// together.
#pragma once

#include <vector>

#include <pumice/plan/plan_book.hpp>
#include <pumice/plan/problem.hpp>
#include <pumice/plan/target.hpp>

namespace pumice {

/// A layer, and what its tiles are cut from.
struct LayerOnMap {
  ConvolutionProblem problem;   // forward or an input gradient
  int map = 0;   // equal for layers whose tiles can be the same: one map and direction
};

/// On a device a map is cut anew for each height of tiles that a layer takes. Here layers take
/// another height than their rules say where the time that this costs them is predicted to be less
/// than that of a cut which nobody needs then. The book holds all layers' plans, or nothing where
/// none changes; what was measured to be better than a rule stays as it is, and so do splits, order
/// and write mode. Empty on the CPU, where each layer cuts for itself. Deterministic: the same
/// layers give the same book.
PlanBook plans_of_shared_cuts(const std::vector<LayerOnMap>& layers, const Target& target);

}   // namespace pumice
