// Edges of a call for which there is room for more edges and more nodes than it has.
#pragma once

#include <cstdint>

#include <pumice/core/results.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice {

/// Where a list of counts says how many edges are in use, and how many nodes there are of the two
/// kinds that they join.
struct CountsOfEdges {
  std::int64_t edges = 0;
  std::int64_t sources = 0;
  std::int64_t targets = 0;
};

/// `edges` i64 [2, room], sources and targets, as they are, in memory of their own. `counts` i64
/// [n] is read at the places of `at` when the stream of `edges` comes to it. An edge in use with an
/// end that there is not is a mistake: UserError on the CPU, which `label` ("Graph") begins and
/// which names the end, its number and how many there are; on a device that end becomes 0, and the
/// next call that waits raises it. Does not wait.
Tensor edges_in_use(ConstTensorView edges, ConstTensorView counts, const CountsOfEdges& at,
                    const char* label, const Place& place = {});

}   // namespace pumice
