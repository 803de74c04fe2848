// Kernels of a driver for whole networks: those of sets and maps in the emulator, nothing else.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "coords/cuda/sources.hpp"
#include "fake_driver/fake.hpp"
#include "formats/cuda/sources.hpp"
#include "graphs/cuda/sources.hpp"
#include "maps/cuda/sources.hpp"
#include "support/device_emulator.hpp"
#include "support/emulated_kernels.hpp"

namespace pumice::fake {
namespace {

bool has(std::span<const jit::KernelGroup> groups, std::string_view name) {
  return std::any_of(groups.begin(), groups.end(), [&](const jit::KernelGroup& group) {
    return std::find(group.kernels.begin(), group.kernels.end(), name) != group.kernels.end();
  });
}

}   // namespace

std::size_t argument_bytes(const std::string&) {
  return 1;   // every kernel is there, and nobody asks for more
}

Work work_of(const std::string& name, const void* bytes, const cuda::LaunchConfig& config) {
  if (!has(cuda::coords_kernels(), name) && !has(cuda::maps_kernels(), name) &&
      !has(cuda::graphs_kernels(), name) && !has(cuda::formats_kernels(), name))
    return [] {};
  const test::EmulatedKernel* const kernel = test::find_emulated_kernel(name);
  if (kernel == nullptr) std::abort();   // every kernel of sets and maps is emulated
  std::vector<std::uint64_t> arguments((kernel->argument_bytes + 7) / 8);
  std::memcpy(arguments.data(), bytes, kernel->argument_bytes);
  const test::EmulatedShape shape{.blocks = config.grid_x,
                                  .blocks_y = static_cast<int>(config.grid_y),
                                  .threads = static_cast<int>(config.block_x),
                                  .shared_bytes = static_cast<int>(config.shared_bytes)};
  return [kernel, arguments = std::move(arguments), shape] {
    test::emulate_threads(shape, [&] { kernel->thread(arguments.data()); }, {});
  };
}

}   // namespace pumice::fake
