// Checks a launch and hands it to the driver.
#include "jit/launch.hpp"

#include <limits>
#include <string>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/context.hpp"
#include "core/cuda/status.hpp"
#include "core/environment.hpp"
#include "jit/dependent_launch.hpp"

namespace pumice::jit::detail {
namespace {

void check_shape(const Kernel& kernel, const LaunchShape& shape, const KernelLimits& limits) {
  PUMICE_ENSURES(shape.blocks >= 0 && shape.blocks <= std::numeric_limits<std::int32_t>::max(),
                 "kernel ", kernel.name(), " launched with ", shape.blocks, " blocks");
  PUMICE_ENSURES(shape.blocks_y >= 1 && shape.blocks_y <= 65535 && shape.blocks_z >= 1 &&
                     shape.blocks_z <= 65535,
                 "kernel ", kernel.name(), " launched with ", shape.blocks_y, " by ",
                 shape.blocks_z, " blocks along y and z: 1 to 65,535 each");
  PUMICE_ENSURES(shape.threads >= 1 && shape.threads <= limits.most_threads, "kernel ",
                 kernel.name(), " launched with ", shape.threads, " threads a block; it takes ",
                 limits.most_threads);
}

/// A kernel gets 48 KiB of shared memory unless it is told that it may have more.
void allow_shared(const Kernel& kernel, int bytes, Device device, KernelLimits& limits) {
  if (bytes <= limits.allowed_dynamic_bytes.load(std::memory_order_acquire)) return;
  const int most = limits.most_shared_bytes - limits.static_shared_bytes;
  PUMICE_ENSURES(bytes <= most, "kernel ", kernel.name(), " asks for ", bytes,
                 " bytes of shared memory; ", to_string(device), " has ", most, " for it");
  PUMICE_CUDA(cuKernelSetAttribute(cuda::kMostDynamicSharedBytes, most, kernel.loaded().handle,
                                   cuda::context_of(device).id));
  limits.allowed_dynamic_bytes.store(most, std::memory_order_release);
}

void wait_after(const Kernel& kernel, StreamView stream) {
  if (is_capturing(stream)) return;
  const cuda::Result result = cuda::driver().cuStreamSynchronize(cuda::handle_of(stream));
  if (result != cuda::kSuccess) cuda::raise(result, "kernel " + kernel.name());
  try {
    cuda::raise_status(stream);
  } catch (const UserError& error) {
    throw UserError("kernel " + kernel.name() + ": " + error.what());
  }
}

}   // namespace

void launch_bytes(const Kernel& kernel, const LaunchShape& shape, StreamView stream,
                  const void* arguments, std::size_t bytes) {
  PUMICE_ENSURES(kernel.defined(), "a kernel that was never loaded is launched");
  PUMICE_ENSURES(stream.device.kind == DeviceKind::cuda, "kernel ", kernel.name(), " launched on ",
                 to_string(stream.device));
  const LoadedKernel& loaded = kernel.loaded();
  const cuda::ContextGuard guard(stream.device);
  KernelLimits& limits = loaded.limits(stream.device);
  check_shape(kernel, shape, limits);
  PUMICE_ENSURES(
      limits.argument_bytes < 0 || limits.argument_bytes == static_cast<std::int64_t>(bytes),
      "kernel ", kernel.name(), " takes ", limits.argument_bytes, " bytes of arguments, not ",
      bytes, ": host and device disagree about the struct");
  allow_shared(kernel, shape.shared_bytes, stream.device, limits);
  if (shape.blocks == 0) return;

  cuda::LaunchAttribute overlap;
  overlap.id = cuda::kProgrammaticStreamSerialization;
  overlap.value = 1;
  const bool overlaps = dependent_launches() && loaded.traits.waits && follows_recorded(stream);
  const cuda::LaunchConfig config{.grid_x = static_cast<unsigned>(shape.blocks),
                                  .grid_y = static_cast<unsigned>(shape.blocks_y),
                                  .grid_z = static_cast<unsigned>(shape.blocks_z),
                                  .block_x = static_cast<unsigned>(shape.threads),
                                  .shared_bytes = static_cast<unsigned>(shape.shared_bytes),
                                  .stream = cuda::handle_of(stream),
                                  .attributes = overlaps ? &overlap : nullptr,
                                  .attribute_count = overlaps ? 1u : 0u};
  void* list[] = {const_cast<void*>(arguments)};
  const cuda::Result result = cuda::driver().cuLaunchKernelEx(
      &config, reinterpret_cast<cuda::FunctionHandle>(loaded.handle), list, nullptr);
  if (result != cuda::kSuccess) cuda::raise(result, "launch of kernel " + kernel.name());
  if (dependent_launches()) note_recorded(stream, loaded.traits.writes_only_features);
  if (environment::waits_after_launch()) wait_after(kernel, stream);
}

}   // namespace pumice::jit::detail
