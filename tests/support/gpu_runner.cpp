// A runner on a CUDA device whose memory the host sees too.
#include <dlfcn.h>

#include <pumice/core/stream.hpp>

#include "core/cuda/context.hpp"
#include "core/cuda/driver.hpp"
#include "jit/module.hpp"
#include "support/kernel_engines.hpp"

namespace pumice::test {
namespace {

/// Memory that moves between host and device as either touches it.
class ManagedAllocator final : public Allocator {
 public:
  ManagedAllocator() {
    void* const library = dlopen(cuda::driver_state().path.c_str(), RTLD_NOW);
    PUMICE_ENSURES(library != nullptr, "the driver is gone");
    allocate_ = reinterpret_cast<Allocate>(dlsym(library, "cuMemAllocManaged"));
    free_ = reinterpret_cast<Free>(dlsym(library, "cuMemFree_v2"));
    PUMICE_ENSURES(allocate_ != nullptr && free_ != nullptr, "the driver has no managed memory");
  }
  void* allocate(std::size_t bytes, StreamView) override {
    const cuda::ContextGuard guard(kGpu);
    cuda::DeviceAddress address = 0;
    cuda::check(allocate_(&address, bytes, kVisibleEverywhere), "cuMemAllocManaged");
    std::memset(reinterpret_cast<void*>(address), 0xa5, bytes);
    return reinterpret_cast<void*>(address);
  }
  void deallocate(void* data, std::size_t, StreamView) noexcept override {
    free_(cuda::address_of(data));
  }

 private:
  using Allocate = cuda::Result (*)(cuda::DeviceAddress*, std::size_t, unsigned);
  using Free = cuda::Result (*)(cuda::DeviceAddress);
  static constexpr unsigned kVisibleEverywhere = 1;   // CU_MEM_ATTACH_GLOBAL
  Allocate allocate_ = nullptr;
  Free free_ = nullptr;
};

const std::shared_ptr<Allocator>& managed_allocator() {
  static const std::shared_ptr<Allocator> allocator = std::make_shared<ManagedAllocator>();
  return allocator;
}

StatusRecord* new_record() {
  return new (managed_allocator()->allocate(sizeof(StatusRecord), {})) StatusRecord;
}

class GpuRunner final : public TestRunner {
 public:
  GpuRunner() : GpuRunner(std::make_unique<Stream>(kGpu)) {}
  ~GpuRunner() override { managed_allocator()->deallocate(status(), sizeof(StatusRecord), {}); }

 private:
  explicit GpuRunner(std::unique_ptr<Stream> stream)
      : TestRunner(stream->view(), managed_allocator(), new_record()), own_(std::move(stream)) {}

  void run_bytes(const jit::KernelName& kernel, const jit::LaunchShape& shape,
                 const void* arguments, std::size_t bytes) override {
    note_launch(kernel.name);
    const jit::Module& module = jit::load(kGpu, *kernel.source);
    jit::detail::launch_bytes(module.kernel(kernel.name), shape, stream(), arguments, bytes);
    own_->wait();
  }

  std::unique_ptr<Stream> own_;
};

}   // namespace

std::unique_ptr<TestRunner> gpu_runner() {
  return std::make_unique<GpuRunner>();
}

}   // namespace pumice::test
