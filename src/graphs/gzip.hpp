// Files that gzip has compressed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <pumice/core/buffer.hpp>

namespace pumice::detail {

/// What `bytes` inflate to, all parts of them behind each other; nothing where they do not begin as
/// gzip's do. UserError, naming `name`, where they are damaged, or grow beyond what edges do.
std::optional<Buffer<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                              std::string_view name);

}   // namespace pumice::detail
