// Compiled kernels on disk, shared by all processes of a user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "jit/compile.hpp"

namespace pumice::jit {

/// A folder with one file for each kernel, named by its key. Files appear whole or not at all, so
/// any number of processes may use one folder. When it outgrows its limit, the files that were used
/// longest ago go.
class CubinCache {
 public:
  /// An empty folder keeps nothing. The folder is made when the first kernel is stored.
  CubinCache(std::filesystem::path folder, std::int64_t limit_bytes);

  /// The kernel stored under `key`, from then on the most recently used. A file that cannot be used
  /// counts as none; the log says why.
  std::optional<CompileResult> find(const Digest& key) const;
  /// Keeps `compiled`. A folder that cannot be written is not an error: the log says so once.
  void store(const Digest& key, const CompileResult& compiled) const;

  /// Why nothing can be kept in the folder as it is; empty where it can, or is not there yet.
  std::string problem() const;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path path_of(const Digest& key) const;
  std::int64_t limit_bytes() const { return limit_bytes_; }

  struct Use {
    std::int64_t bytes = 0;
    std::int64_t kernels = 0;
  };
  Use use() const;

 private:
  void write(const Digest& key, const CompileResult& compiled) const;
  void evict(const std::filesystem::path& kept) const;

  std::filesystem::path folder_;
  std::int64_t limit_bytes_;
};

/// The process's cache: in PUMICE_CACHE, else $XDG_CACHE_HOME/pumice, else ~/.cache/pumice, up to
/// PUMICE_CACHE_MB mebibytes (512).
const CubinCache& process_cache();

/// What a kernel is stored under: its source_digest and the version of the compiler.
Digest cache_key(const Digest& source, int nvrtc_major, int nvrtc_minor);

}   // namespace pumice::jit
