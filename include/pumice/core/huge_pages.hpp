// Memory of the host in large pages.
#pragma once

#include <cstddef>

namespace pumice {

/// Asks the system for pages of 2 MiB where [data, data + bytes), memory of the host's that nobody
/// has touched, holds whole ones, so that it is touched 512 times less often. Nothing comes of it
/// where the system has none.
void prefer_huge_pages(void* data, std::size_t bytes) noexcept;

}   // namespace pumice
