// Stream capture.
#include "core/cuda/graph.hpp"

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/context.hpp"
#include "core/environment.hpp"

namespace pumice::cuda {

Graph Graph::capture(StreamView stream, const std::function<void()>& work) {
  PUMICE_EXPECTS(stream.device.kind == DeviceKind::cuda,
                 "a graph is recorded on a CUDA device, not ", to_string(stream.device));
  PUMICE_EXPECTS(stream.native != nullptr,
                 "the default stream cannot be recorded into a graph: make a Stream");
  const ContextGuard guard(stream.device);
  Graph graph(stream);
  PUMICE_CUDA(cuStreamBeginCapture_v2(handle_of(stream), kCaptureThreadLocal));
  try {
    work();
  } catch (...) {
    driver().cuStreamEndCapture(handle_of(stream), &graph.graph_);
    throw;
  }
  PUMICE_CUDA(cuStreamEndCapture(handle_of(stream), &graph.graph_));
  PUMICE_CUDA(cuGraphInstantiateWithFlags(&graph.executable_, graph.graph_, 0));
  return graph;
}

Graph::~Graph() {
  if (executable_ != nullptr) driver().cuGraphExecDestroy(executable_);
  if (graph_ != nullptr) driver().cuGraphDestroy(graph_);
}

void Graph::launch() const {
  const ContextGuard guard(stream_.device);
  PUMICE_CUDA(cuGraphLaunch(executable_, handle_of(stream_)));
  if (environment::waits_after_launch()) wait(stream_);
}

std::size_t Graph::nodes() const {
  std::size_t count = 0;
  PUMICE_CUDA(cuGraphGetNodes(graph_, nullptr, &count));
  return count;
}

}   // namespace pumice::cuda
