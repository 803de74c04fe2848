// The file of one compiled kernel: a header that says what it is, the binary, the compiler's log.
//
//   magic 8 | format 4 | zero 4 | key 32 | cubin bytes 8 | log bytes 8 | digest of both 32 | cubin
//   | log
//
// All numbers little-endian. A file that is truncated, damaged, of another kernel, or no such file
// at all is told apart from a good one before its binary reaches the driver.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "jit/compile.hpp"

namespace pumice::jit {

inline constexpr std::uint64_t kMostCubinBytes = std::uint64_t{256} << 20;

/// The file's bytes.
std::vector<std::byte> encode_cubin(const Digest& key, const CompileResult& compiled);

/// What `bytes` hold when they are a good file of `key`; else nothing, and why in `problem`.
std::optional<CompileResult> decode_cubin(const Digest& key, std::span<const std::byte> bytes,
                                          std::string& problem);

/// The kernel in a file. Nothing where there is none or it cannot be used; why stands in `problem`,
/// which stays empty where there is simply no file. Only a regular file that belongs to this user
/// or to root is read: a binary is code, and the folder may be shared.
std::optional<CompileResult> read_cubin(const std::filesystem::path& path, const Digest& key,
                                        std::string& problem);

}   // namespace pumice::jit
