// Runs the launches of specified kernels on the host: a test says which body belongs to which
// source, and the sequences that a device executes are run by the emulator.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "jit/kernel_runner.hpp"
#include "kernels/pair_list.hpp"
#include "kernels/problem.hpp"
#include "support/device_emulator.hpp"

namespace pumice::test {

/// Runs kernels of a few specifications, by source and name.
class SpecRunner final : public jit::KernelRunner {
 public:
  SpecRunner() : KernelRunner({}, cpu_allocator(), nullptr) {}

  template <class Arguments>
  void knows(const std::string& source, const std::string& kernel, void (*body)(const Arguments&)) {
    kernels_[source + "/" + kernel] = [body](const void* arguments) {
      body(*static_cast<const Arguments*>(arguments));
    };
  }
  int launches() const { return launches_; }

 private:
  void run_bytes(const jit::KernelName& kernel, const jit::LaunchShape& shape,
                 const void* arguments, std::size_t) override {
    const auto found = kernels_.find(kernel.source->name + "/" + kernel.name);
    if (found == kernels_.end())
      throw std::runtime_error("no kernel " + kernel.source->name + "/" + kernel.name);
    ++launches_;
    emulate_threads({.blocks = shape.blocks,
                     .blocks_y = shape.blocks_y,
                     .threads = shape.threads,
                     .shared_bytes = shape.shared_bytes},
                    [&] { found->second(arguments); },
                    {.blocks = RunOrder::shuffled, .threads = RunOrder::shuffled});
  }

  std::map<std::string, std::function<void(const void*)>> kernels_;
  int launches_ = 0;
};

inline Tensor garbage(const Shape& shape, DType type) {
  Tensor tensor(shape, type);
  if (tensor.bytes() > 0) std::memset(tensor.raw(), 0xff, tensor.bytes());
  return tensor;
}

}   // namespace pumice::test
