// One call of a chain in evaluation, for the recorder.
#pragma once

#include <nanobind/nanobind.h>
#include <pumice/nn/chain.hpp>

namespace pumice::python {

/// With weights that are folded and packed for this call alone; None where types do not fit
/// (`types_fit`).
nanobind::object infer_once(nanobind::handle features, nanobind::handle other, nn::Chain& chain,
                            nanobind::handle maps, nanobind::handle parameters,
                            nanobind::handle layouts, nanobind::handle running, bool rounds,
                            bool deterministic, bool tf32);

}   // namespace pumice::python
