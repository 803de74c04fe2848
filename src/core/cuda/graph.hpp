// Work recorded once and launched as a whole.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <pumice/core/device.hpp>

#include "core/cuda/driver.hpp"

namespace pumice::cuda {

/// What was enqueued on one stream. Its buffers are to live as long as it does; nothing recorded
/// may wait for the device.
class Graph {
 public:
  /// Records what `work` enqueues on `stream`, which runs nothing meanwhile. What `work` throws is
  /// thrown on. UserError for the default stream, which cannot be recorded.
  static Graph capture(StreamView stream, const std::function<void()>& work);

  Graph(Graph&& other) noexcept
      : stream_(other.stream_),
        graph_(std::exchange(other.graph_, nullptr)),
        executable_(std::exchange(other.executable_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(graph_, other.graph_);
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~Graph();

  /// Enqueues it on the stream it was recorded on, to which its kernels report trouble.
  void launch() const;
  StreamView stream() const { return stream_; }
  std::size_t nodes() const;

 private:
  explicit Graph(StreamView stream) : stream_(stream) {}

  StreamView stream_;
  GraphHandle graph_ = nullptr;
  GraphExecHandle executable_ = nullptr;
};

}   // namespace pumice::cuda
