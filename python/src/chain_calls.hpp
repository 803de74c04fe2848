// One call of a chain in evaluation, for the recorder.
#pragma once

#include <nanobind/nanobind.h>
#include <pumice/core/numerics.hpp>
#include <pumice/nn/chain.hpp>

namespace pumice::python {

/// Tensors, and tuples as in chain_tensors.hpp. `rounds`: autocast asked for the features' type.
struct ChainCall {
  nanobind::object features, other;
  nn::Chain& chain;
  nanobind::handle maps, parameters, running;
  bool rounds;
  Numerics numerics;
};

/// With weights that are folded and packed for this call alone; None where types do not fit
/// (`types_fit`).
nanobind::object infer_once(const ChainCall& given, nanobind::handle layouts);
/// With a ChainWeights that was kept; None where types do not fit, and where it was made of other
/// tensors, or of these before somebody wrote into them.
nanobind::object infer_kept(const ChainCall& given, nanobind::handle weights);

}   // namespace pumice::python
