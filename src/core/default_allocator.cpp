// Which allocator a buffer without one of its own comes from.
#include <algorithm>
#include <utility>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

namespace pumice {
namespace {

struct Scope {
  Device device;
  std::shared_ptr<Allocator> allocator;
  ScopeOf of;
};
using Scopes = std::vector<Scope>;

Scopes& scopes() {
  thread_local Scopes mine;   // innermost last
  return mine;
}

/// The innermost one of this thread for the device; null without one.
const Scope* innermost_scope(Device device, bool outlives_a_pass) {
  const Scopes& mine = scopes();
  const auto found = std::find_if(mine.rbegin(), mine.rend(), [&](const Scope& scope) {
    return scope.device == device && !(outlives_a_pass && scope.of == ScopeOf::one_pass);
  });
  return found != mine.rend() ? &*found : nullptr;
}

std::shared_ptr<Allocator> innermost(Device device, bool outlives_a_pass) {
  if (const Scope* scope = innermost_scope(device, outlives_a_pass)) return scope->allocator;
  return device.kind == DeviceKind::cpu ? cpu_allocator() : cuda_allocator(device.index);
}

}   // namespace

std::shared_ptr<Allocator> default_allocator(Device device) {
  return innermost(device, false);
}

std::shared_ptr<Allocator> lasting_allocator(Device device) {
  return innermost(device, true);
}

bool allocates_for_one_pass(Device device) {
  const Scope* scope = innermost_scope(device, false);
  return scope != nullptr && scope->of == ScopeOf::one_pass;
}

AllocatorScope::AllocatorScope(Device device, std::shared_ptr<Allocator> allocator, ScopeOf of) {
  PUMICE_EXPECTS(allocator != nullptr, "an allocator scope of ", to_string(device),
                 " without an allocator");
  scopes().push_back({device, std::move(allocator), of});
}

AllocatorScope::~AllocatorScope() {
  scopes().pop_back();
}

}   // namespace pumice
