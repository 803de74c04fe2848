// Where a sequence of launches goes: to a device, or, in tests, to an emulator on the host. Code
// that enqueues device work takes one, and so the very sequence that runs on a GPU is tested where
// there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <pumice/shared/status.h>
#include <pumice/core/buffer.hpp>
#include <pumice/core/device.hpp>

#include "jit/compile.hpp"
#include "jit/launch.hpp"

namespace pumice::jit {

/// A kernel of a source that lives as long as the process.
struct KernelName {
  const Source* source;
  const char* name;
};

class KernelRunner {
 public:
  KernelRunner(StreamView stream, std::shared_ptr<Allocator> allocator, StatusRecord* status)
      : stream_(stream), allocator_(std::move(allocator)), status_(status) {}
  virtual ~KernelRunner() = default;
  KernelRunner(const KernelRunner&) = delete;
  KernelRunner& operator=(const KernelRunner&) = delete;

  template <class Arguments>
  void run(const KernelName& kernel, const LaunchShape& shape, const Arguments& arguments) {
    static_assert(std::is_trivially_copyable_v<Arguments>, "arguments travel as bytes");
    static_assert(sizeof(Arguments) <= kMostArgumentBytes, "more than a kernel takes");
    if (shape.blocks > 0) run_bytes(kernel, shape, &arguments, sizeof(Arguments));
  }

  /// Memory where the kernels run, in the order of the stream.
  template <class T> Buffer<T> make(std::int64_t size) const {
    return Buffer<T>(size, stream_, allocator_);
  }
  StreamView stream() const { return stream_; }
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  /// Where kernels report, as they address it.
  StatusRecord* status() const { return status_; }

 private:
  virtual void run_bytes(const KernelName& kernel, const LaunchShape& shape, const void* arguments,
                         std::size_t bytes) = 0;

  StreamView stream_;
  std::shared_ptr<Allocator> allocator_;
  StatusRecord* status_;
};

/// Launches on a stream of a CUDA device; kernels are compiled when first asked for.
class DeviceRunner final : public KernelRunner {
 public:
  DeviceRunner(StreamView stream, std::shared_ptr<Allocator> allocator);
  /// Kernels report to `status`, memory of the device, in place of the record of the stream; null:
  /// to that one.
  DeviceRunner(StreamView stream, std::shared_ptr<Allocator> allocator, StatusRecord* status);

 private:
  void run_bytes(const KernelName& kernel, const LaunchShape& shape, const void* arguments,
                 std::size_t bytes) override;
};

}   // namespace pumice::jit
