// A file as it is at one moment: opened once, asked for its state, read from any position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pumice::jit {

class ReadOnlyFile {
 public:
  enum class Links : unsigned char { followed, refused };

  /// Opens a regular file. Where it cannot be used `problem` says why; where there is simply no
  /// file nothing is open and there is no problem.
  ReadOnlyFile(const std::filesystem::path& path, Links links);
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&&) = delete;
  ~ReadOnlyFile();

  bool is_open() const { return descriptor_ >= 0; }
  const std::string& problem() const { return problem_; }
  std::uint64_t size() const { return size_; }
  std::uint32_t owner() const { return owner_; }
  /// Anyone may write it.
  bool is_open_to_all() const { return is_open_to_all_; }

  /// `size` bytes from `offset`; fewer where the file ends before that. Any thread may call.
  std::vector<std::byte> read(std::uint64_t offset, std::size_t size) const;

 private:
  int descriptor_ = -1;
  std::string problem_;
  std::uint64_t size_ = 0;
  std::uint32_t owner_ = 0;
  bool is_open_to_all_ = false;
};

}   // namespace pumice::jit
