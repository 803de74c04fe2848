// What a convolution on a device runs on, as its plan says: for those who make it for many of them
// at once.
#pragma once

#include <optional>

#include <pumice/plan/convolution_plan.hpp>

#include "formats/cuda/cut_wanted.hpp"
#include "kernels/cuda/packed_tiles.hpp"

namespace pumice::cuda {

/// Of a product whose outputs are cut into tiles.
TileCut tile_cut(const ConvolutionProblem& problem, const ConvolutionPlan& plan);

/// What is cut of `map`, a KernelMap's, seen in the direction of the problem. Nothing where every
/// row meets itself alone.
std::optional<CutWanted> cut_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan,
                                const KernelMapView& map);

/// The form in which a product reads its weight, but for a scale. Nothing where that is how it
/// lies.
std::optional<PackUse> packing_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan);
/// The same of the weight of a shortcut, which a plan that fuses inputs reads.
PackUse shortcut_packing_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan);

}   // namespace pumice::cuda
