// Memory of its own for one stream, kept as long as a plan needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <pumice/core/allocator.hpp>

namespace pumice {

/// Takes regions from another allocator and keeps them until it goes. What is given back serves
/// whoever asks next on the same stream, in the order of that stream, so one sequence of requests
/// gets the same addresses each time it is repeated: a sequence that has run once can be captured.
/// Any thread may call.
class StreamHeap final : public Allocator {
 public:
  /// `source`: by default the device's own allocator.
  explicit StreamHeap(StreamView stream, std::shared_ptr<Allocator> source = {});
  /// A heap that carves the regions of `other`, and those that either takes from now on, as if all
  /// were free: for sequences of one stream of which each makes anew what it reads.
  explicit StreamHeap(const StreamHeap& other);
  StreamHeap& operator=(const StreamHeap&) = delete;
  ~StreamHeap() override;

  /// UserError for memory of another stream, or where more would be needed while the stream is
  /// captured: run once what is to be captured before.
  void* allocate(std::size_t bytes, StreamView stream) override;
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override;

  /// Bytes of the regions that it carves.
  std::int64_t reserved_bytes() const;
  /// Bytes in use.
  std::int64_t used_bytes() const;

 private:
  struct Regions;
  struct State;
  std::unique_ptr<State> state_;
};

}   // namespace pumice
