// Finding and opening bundles, and one warning for each that is ignored.
#include "jit/bundle_set.hpp"

#include <algorithm>
#include <utility>

#include <pumice/core/log.hpp>

#include "core/environment.hpp"
#include "core/installed.hpp"

namespace pumice::jit {
namespace {

namespace fs = std::filesystem;

struct Files {
  std::vector<fs::path> paths;
  std::string problem;   // why a folder gives none
};

/// `place` itself, or the bundles in it where it is a folder.
Files files_at(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) return {{place}, {}};
  Files files;
  for (fs::directory_iterator entry(place, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == kBundleSuffix) files.paths.push_back(entry->path());
  }
  std::sort(files.paths.begin(), files.paths.end());
  if (error) files.problem = "the folder cannot be read: " + error.message();
  if (!error && files.paths.empty())
    files.problem = std::string("the folder holds no ") + kBundleSuffix + " file";
  return files;
}

void say_ignored(const fs::path& path, const std::string& why) {
  warn("the kernels of " + path.string() + " are not used: " + why +
       "; kernels are compiled instead");
}

}   // namespace

std::vector<fs::path> bundle_places() {
  if (!environment::bundle().empty()) return {environment::bundle()};
  return installed_places("kernels");
}

BundleSet::BundleSet(const std::vector<fs::path>& places, Missing missing) {
  for (const fs::path& place : places) {
    const Files files = files_at(place);
    for (const fs::path& path : files.paths)
      open(path, missing);
    if (missing == Missing::is_a_problem && !files.problem.empty()) ignore(place, files.problem);
  }
}

void BundleSet::ignore(const fs::path& path, const std::string& problem) {
  Bundle& bundle = bundles_.emplace_back();
  bundle.path = path;
  bundle.problem = problem;
  say_ignored(path, problem);
}

void BundleSet::open(const fs::path& path, Missing missing) {
  std::error_code nothing;   // beside a program named pumice there is no folder pumice/kernels
  if (missing == Missing::is_fine && !std::filesystem::exists(path, nothing)) return;
  std::string problem;
  std::optional<BundleFile> file = BundleFile::open(path, problem);
  if (!file && problem.empty()) problem = "there is no such file";
  if (!problem.empty()) return ignore(path, problem);
  Bundle& bundle = bundles_.emplace_back();
  bundle.path = path;
  bundle.file.emplace(std::move(*file));
}

std::optional<BundleSet::Found> BundleSet::find(const Digest& source, int newest_major) const {
  for (const Bundle& bundle : bundles_) {
    if (!bundle.file) continue;
    std::string problem;
    if (auto found = bundle.file->find(source, newest_major, problem))
      return Found{std::move(*found), bundle.path};
    if (!problem.empty() && !bundle.has_warned.exchange(true)) say_ignored(bundle.path, problem);
  }
  return std::nullopt;
}

const BundleSet& process_bundles() {
  const bool named = !environment::bundle().empty();
  static const BundleSet& bundles = *new BundleSet(
      bundle_places(), named ? BundleSet::Missing::is_a_problem : BundleSet::Missing::is_fine);
  return bundles;
}

}   // namespace pumice::jit
