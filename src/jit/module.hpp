// Kernels by their source: compiled or found, loaded once a process, launched by name. The one
// header that a stage with device work includes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pumice/core/device.hpp>

#include "jit/compile.hpp"
#include "jit/kernel.hpp"
#include "jit/launch.hpp"

namespace pumice::jit {

/// "sm_90a" for an H200: the architecture that kernels for `device` are compiled for.
const std::string& architecture_of(Device device);

/// The loaded kernels of one source.
class Module {
 public:
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  /// InternalError, with the names there are, for one that is not there.
  Kernel kernel(std::string_view name) const;
  /// What the assembler said of each kernel.
  const std::vector<KernelReport>& reports() const;

 private:
  friend const Module& load(Device device, const Source& source);
  struct State;
  explicit Module(State* state) : state_(state) {}
  State* state_;
};

/// The module of `source` for the architecture of `device`: from this process, a bundle or the
/// cache on disk, else compiled. Stays loaded as long as the process lives. Any thread may call;
/// different sources compile at the same time, the same one once. Throws as `compile` does; the
/// next call tries again.
const Module& load(Device device, const Source& source);

}   // namespace pumice::jit
