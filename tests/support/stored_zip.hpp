// Entries of a zip archive that were stored uncompressed, as PyTorch stores tensors.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace pumice::test {

/// Bytes by entry name. Throws std::runtime_error for anything that is not such an archive.
std::map<std::string, std::vector<char>> read_stored_zip(const std::filesystem::path& path);

}   // namespace pumice::test
