// How long the steps of a command take.
#pragma once

#include <chrono>
#include <utility>

#include <pumice/core/stream.hpp>

namespace pumice::cli {

class StepTimer {
 public:
  explicit StepTimer(StreamView stream) : stream_(stream) {}
  /// Waits until all that was enqueued is done. Milliseconds since the last call, or since this was
  /// made.
  double wait_and_lap() {
    wait(stream_);
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  StreamView stream_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}   // namespace pumice::cli
