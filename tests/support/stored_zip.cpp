// Walks the central directory of a zip archive.
#include "support/stored_zip.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace pumice::test {
namespace {

template <class Number> Number number_at(const std::vector<char>& bytes, std::size_t at) {
  if (at + sizeof(Number) > bytes.size()) throw std::runtime_error("zip archive is cut short");
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof(Number));
  return value;
}

/// The end record is the last thing in the file but for a comment.
std::size_t find_end_record(const std::vector<char>& bytes) {
  constexpr std::uint32_t kEndRecord = 0x06054b50;
  for (std::size_t back = 22; back <= bytes.size() && back < 22 + 65536; ++back) {
    if (number_at<std::uint32_t>(bytes, bytes.size() - back) == kEndRecord) {
      return bytes.size() - back;
    }
  }
  throw std::runtime_error("not a zip archive");
}

}   // namespace

std::map<std::string, std::vector<char>> read_stored_zip(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end = find_end_record(bytes);
  std::size_t entry = number_at<std::uint32_t>(bytes, end + 16);
  std::map<std::string, std::vector<char>> entries;
  for (int left = number_at<std::uint16_t>(bytes, end + 10); left > 0; --left) {
    if (number_at<std::uint16_t>(bytes, entry + 10) != 0) {
      throw std::runtime_error("zip entry is compressed");
    }
    const std::size_t size = number_at<std::uint32_t>(bytes, entry + 24);
    const std::size_t name_size = number_at<std::uint16_t>(bytes, entry + 28);
    const std::size_t header = number_at<std::uint32_t>(bytes, entry + 42);
    const std::size_t data = header + 30 + number_at<std::uint16_t>(bytes, header + 26) +
                             number_at<std::uint16_t>(bytes, header + 28);
    if (data + size > bytes.size()) throw std::runtime_error("zip archive is cut short");
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(data);
    entries.emplace(std::string(bytes.data() + entry + 46, name_size),
                    std::vector<char>(begin, begin + static_cast<std::ptrdiff_t>(size)));
    entry += 46 + name_size + number_at<std::uint16_t>(bytes, entry + 30) +
             number_at<std::uint16_t>(bytes, entry + 32);
  }
  return entries;
}

}   // namespace pumice::test
