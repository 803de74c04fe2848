#include <pumice/graphs/graph.hpp>

#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

namespace pumice {

Graph::Graph(Csr pattern, StreamView stream) : pattern_(std::move(pattern)), stream_(stream) {
  PUMICE_EXPECTS(view().device == stream.device, "Graph: the pattern is on ",
                 to_string(view().device), " and the stream on ", to_string(stream.device),
                 ": give a stream of the pattern's device");
}

std::shared_ptr<const Csr> Graph::backwards(StreamView stream) {
  if (backwards_ != nullptr) return backwards_;
  auto made = std::make_shared<const Csr>(transposed(view(), stream));
  if (!is_capturing(stream)) backwards_ = made;
  return made;
}

}   // namespace pumice
