// Advice to the system about pages.
#include <pumice/core/huge_pages.hpp>

#include <cstdint>

#include <sys/mman.h>

namespace pumice {

void prefer_huge_pages(void* data, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (first + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (first + bytes) / kPage * kPage;
  if (begin >= end) return;
  // Advice: there is nothing to do about a refusal.
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}   // namespace pumice
