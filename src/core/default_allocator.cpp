// Which allocator a buffer without one of its own comes from.
#include <algorithm>
#include <utility>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

namespace pumice {
namespace {

using Scopes = std::vector<std::pair<Device, std::shared_ptr<Allocator>>>;

Scopes& scopes() {
  thread_local Scopes mine;   // innermost last
  return mine;
}

}   // namespace

std::shared_ptr<Allocator> default_allocator(Device device) {
  const Scopes& mine = scopes();
  const auto found = std::find_if(mine.rbegin(), mine.rend(),
                                  [&](const auto& scope) { return scope.first == device; });
  if (found != mine.rend()) return found->second;
  return device.kind == DeviceKind::cpu ? cpu_allocator() : cuda_allocator(device.index);
}

AllocatorScope::AllocatorScope(Device device, std::shared_ptr<Allocator> allocator) {
  PUMICE_EXPECTS(allocator != nullptr, "an allocator scope of ", to_string(device),
                 " without an allocator");
  scopes().emplace_back(device, std::move(allocator));
}

AllocatorScope::~AllocatorScope() {
  scopes().pop_back();
}

}   // namespace pumice
