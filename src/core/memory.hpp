// How much memory this machine has.
#pragma once

#include <unistd.h>

namespace pumice {

/// In bytes, as the system counts its pages.
inline double memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

}   // namespace pumice
