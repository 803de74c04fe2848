// The bundles of kernels that a process looks in, and what became of those it cannot use.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "jit/bundle_file.hpp"

namespace pumice::jit {

/// How the files of bundles end.
inline constexpr const char* kBundleSuffix = ".bundle";

/// Where bundles lie: the file or folder that PUMICE_BUNDLE names, and then nothing else; else
/// installed_places("kernels").
std::vector<std::filesystem::path> bundle_places();

class BundleSet {
 public:
  enum class Missing : unsigned char { is_fine, is_a_problem };

  /// Opens every file of `places`, and in folders of them every file that ends in kBundleSuffix, by
  /// name. One that cannot be used is left out, and the log says so whether asked or not: its owner
  /// expects that nothing is compiled.
  explicit BundleSet(const std::vector<std::filesystem::path>& places = {},
                     Missing missing = Missing::is_fine);

  struct Found {
    CompileResult result;
    std::filesystem::path path;
  };
  /// From the first bundle that has it. Kernels of a compiler newer than `newest_major` do not
  /// count. Any thread may call.
  std::optional<Found> find(const Digest& source, int newest_major) const;

  struct Bundle {
    std::filesystem::path path;
    std::string problem;                           // why it is ignored; empty when it is used
    std::optional<BundleFile> file;                // absent when it is ignored
    mutable std::atomic<bool> has_warned{false};   // of damage found later
  };
  const std::deque<Bundle>& bundles() const { return bundles_; }

 private:
  void open(const std::filesystem::path& path, Missing missing);
  void ignore(const std::filesystem::path& path, const std::string& problem);

  std::deque<Bundle> bundles_;   // an atomic cannot move
};

/// Those at bundle_places(), opened by the first call.
const BundleSet& process_bundles();

}   // namespace pumice::jit
