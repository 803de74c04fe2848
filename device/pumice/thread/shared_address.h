// Addresses in shared memory as instructions take them.
#pragma once

#include <pumice/platform.h>
#if !defined(__CUDACC__)
#include <pumice/instructions_host.h>
#endif

namespace pumice {

#if defined(__CUDACC__)
PUMICE_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
#else
using emulator::shared_address;
#endif

}   // namespace pumice
