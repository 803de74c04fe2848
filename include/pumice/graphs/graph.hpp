// A pattern that many calls share, with what is made of it once and kept.
#pragma once

#include <memory>

#include <pumice/graphs/csr.hpp>

namespace pumice {

/// Rows are where messages arrive, columns where they come from; the entries of a row are the edges
/// that lead to it.
class Graph {
 public:
  /// `stream`: of the pattern's device; what is made of the pattern later is enqueued there.
  explicit Graph(Csr pattern, StreamView stream = {});

  CsrView view() const { return pattern_.view(); }
  StreamView stream() const { return stream_; }
  /// The transpose, which gradients of features go over. Made when it is first asked for, and kept,
  /// except while a CUDA graph is being recorded: what is recorded exists after the graph has run.
  /// For one thread at a time. On `stream`, for a call that is recorded on another stream than the
  /// graph's own.
  std::shared_ptr<const Csr> backwards(StreamView stream);
  std::shared_ptr<const Csr> backwards() { return backwards(stream_); }

 private:
  Csr pattern_;
  StreamView stream_;
  std::shared_ptr<const Csr> backwards_;
};

}   // namespace pumice
