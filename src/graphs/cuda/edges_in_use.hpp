// Edges of a call, checked on a device whose counts only it knows.
#pragma once

#include <pumice/graphs/edges_in_use.hpp>

namespace pumice::cuda {

/// Writes `to` [2, room]. Enqueued on the stream of `edges`.
void edges_in_use(ConstTensorView edges, ConstTensorView counts, const CountsOfEdges& at,
                  const char* label, TensorView to);

}   // namespace pumice::cuda
