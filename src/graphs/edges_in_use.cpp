#include <pumice/graphs/edges_in_use.hpp>

#include <algorithm>
#include <span>

#include <pumice/core/error.hpp>

#include "graphs/cuda/edges_in_use.hpp"
#include "graphs/entry_numbers.hpp"

namespace pumice {
namespace {

void check(ConstTensorView edges, ConstTensorView counts, const CountsOfEdges& at) {
  PUMICE_EXPECTS(edges.dtype() == DType::i64 && edges.shape().rank() == 2 && edges.rows() == 2,
                 "edges_in_use: edges are ", name_of(edges.dtype()), ' ', to_string(edges.shape()),
                 ": give i64 [2, room]");
  PUMICE_EXPECTS(counts.dtype() == DType::i64 && counts.shape().rank() == 1,
                 "edges_in_use: counts are ", name_of(counts.dtype()), ' ',
                 to_string(counts.shape()), ": give i64 [counts]");
  for (const std::int64_t place : {at.edges, at.sources, at.targets})
    PUMICE_EXPECTS(place >= 0 && place < counts.rows(), "edges_in_use: count ", place, " of ",
                   counts.rows(), ": give places from 0 on");
  PUMICE_EXPECTS(edges.device() == counts.device(), "edges_in_use: edges are on ",
                 to_string(edges.device()), " and counts on ", to_string(counts.device()),
                 ": copy_to brings one to the other");
}

}   // namespace

Tensor edges_in_use(ConstTensorView edges, ConstTensorView counts, const CountsOfEdges& at,
                    const char* label, const Place& place) {
  check(edges, counts, at);
  Tensor made = place.make(edges.shape(), DType::i64, edges.stream());
  if (edges.device().kind != DeviceKind::cpu) {
    cuda::edges_in_use(edges, counts, at, label, made.view());
    return made;
  }
  const std::span<const std::int64_t> ends = edges.span<std::int64_t>();
  const std::span<const std::int64_t> count = counts.span<std::int64_t>();
  const auto number = [&](std::int64_t which) { return count[static_cast<std::size_t>(which)]; };
  const auto room = static_cast<std::size_t>(edges.extent(1));
  const auto used =
      static_cast<std::size_t>(std::clamp<std::int64_t>(number(at.edges), 0, edges.extent(1)));
  check_numbers(ends.subspan(0, used), number(at.sources), label, "edge_index[0]");
  check_numbers(ends.subspan(room, used), number(at.targets), label, "edge_index[1]");
  std::copy(ends.begin(), ends.end(), made.span<std::int64_t>().begin());
  return made;
}

}   // namespace pumice
