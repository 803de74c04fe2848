// Many compiled kernels in one file, which an installation carries along: found without a compiler
// by what they are made from.
//
//   magic 8 | format 4 | kernels 4 | digest of the device tree 32 | digest of header and index 32
//   index: one entry of 128 bytes a kernel, in the order of their source digests
//     source digest 32 | digest of what is stored 32 | offset 8 | stored bytes 8 | cubin bytes 8
//     | log bytes 8 | architecture 16 | compiler's major 2, minor 2 | zero 12
//   kernels: cubin and compiler's log, deflated
//
// All numbers little-endian. Opening reads header and index and checks them; a kernel is read and
// checked when it is asked for. A file that is cut, damaged or hostile is refused with a reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/compile.hpp"
#include "jit/read_only_file.hpp"

namespace pumice::jit {

struct CompilerVersion {
  int major = 0;
  int minor = 0;
  friend bool operator==(const CompilerVersion&, const CompilerVersion&) = default;
};

struct BundledKernel {
  Digest source{};   // source_digest
  std::string architecture;
  CompilerVersion compiler;
  std::uint64_t stored_bytes = 0;
};

class BundleFile {
 public:
  /// Nothing where it cannot be used; why stands in `problem`, which stays empty where there is no
  /// file.
  static std::optional<BundleFile> open(const std::filesystem::path& path, std::string& problem);

  /// The kernel of a source; nothing where there is none, or where it is damaged, as `problem` then
  /// says. Compilers newer than `newest_major` do not count: a driver refuses what they make.
  std::optional<CompileResult> find(const Digest& source, int newest_major,
                                    std::string& problem) const;

  const std::vector<BundledKernel>& kernels() const { return kernels_; }
  std::uint64_t bytes() const { return file_.size(); }

 private:
  struct Place {
    Digest stored{};
    std::uint64_t offset = 0;
    std::uint64_t cubin_bytes = 0;
    std::uint64_t log_bytes = 0;
  };
  explicit BundleFile(ReadOnlyFile file) : file_(std::move(file)) {}

  ReadOnlyFile file_;
  std::vector<BundledKernel> kernels_;   // in the order of their sources
  std::vector<Place> places_;            // of the same kernels
};

/// Collects compiled kernels and makes the file of them. Not for several threads at once.
class BundleWriter {
 public:
  /// Deflates what `compiled` holds; the slow part, which needs no writer.
  static std::vector<std::byte> pack(const CompileResult& compiled);

  /// InternalError for a source that is there already.
  void add(const BundledKernel& kernel, const CompileResult& compiled,
           std::vector<std::byte> packed);
  /// The file's bytes: the same for the same kernels in any order.
  std::vector<std::byte> finish() const;

 private:
  struct Entry {
    BundledKernel kernel;
    std::uint64_t cubin_bytes = 0;
    std::uint64_t log_bytes = 0;
    std::vector<std::byte> packed;
  };
  std::vector<Entry> entries_;
};

}   // namespace pumice::jit
