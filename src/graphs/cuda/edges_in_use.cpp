#include "graphs/cuda/edges_in_use.hpp"

#include <string>

#include <pumice/graphs/edges_in_use_arguments.h>
#include <pumice/core/allocator.hpp>

#include "core/cuda/status.hpp"
#include "graphs/cuda/sources.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

void edges_in_use(ConstTensorView edges, ConstTensorView counts, const CountsOfEdges& at,
                  const char* label, TensorView to) {
  const std::int64_t room = edges.extent(1);
  if (room == 0) return;
  jit::DeviceRunner runner(edges.stream(), default_allocator(edges.device()));
  const auto* const count = counts.data<std::int64_t>();
  const auto site = [&](const char* end) { return status_site(std::string(label) + ": " + end); };
  runner.run(graphs_kernel("copy_edges_in_use"),
             {.blocks = (room + kEdgeThreads - 1) / kEdgeThreads, .threads = kEdgeThreads},
             EdgesInUseArguments{.end = edges.data<std::int64_t>(),
                                 .room = room,
                                 .edges = count + at.edges,
                                 .sources = count + at.sources,
                                 .targets = count + at.targets,
                                 .status = runner.status(),
                                 .source_site = site("edge_index[0]"),
                                 .target_site = site("edge_index[1]"),
                                 .to = to.data<std::int64_t>()});
}

}   // namespace pumice::cuda
