// Lookup, atomic publication and eviction in the folder of compiled kernels.
#include "jit/cubin_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cache_folder.hpp"
#include "core/environment.hpp"
#include "jit/cubin_file.hpp"

namespace pumice::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".cubin";
constexpr std::string_view kUnfinished = ".part-";   // as AtomicFile names what it writes
constexpr std::int64_t kDefaultMebibytes = 512;

struct Entry {
  fs::path path;
  std::int64_t bytes = 0;
  fs::file_time_type used{};
  bool is_kernel = false;   // else what an interrupted process left
};

/// Whether a cache gave it that name: a digest, then ".cubin", and more only while it is written.
/// Whatever else lies in the folder is left alone.
bool is_ours(std::string_view name) {
  constexpr std::size_t kDigits = 2 * sizeof(Digest);
  if (name.find_first_not_of("0123456789abcdef") != kDigits) return false;
  name.remove_prefix(kDigits);
  if (!name.starts_with(kSuffix)) return false;
  name.remove_prefix(kSuffix.size());
  return name.empty() || name.starts_with(kUnfinished);
}

/// The files of ours in `folder`; none where it cannot be read. Files may go while this looks.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || gone) continue;
    const std::string name = entry->path().filename().string();
    if (!is_ours(name)) continue;
    Entry found{.path = entry->path(), .is_kernel = name.ends_with(kSuffix)};
    const auto bytes = entry->file_size(gone);
    found.used = entry->last_write_time(gone);
    if (gone) continue;
    found.bytes = static_cast<std::int64_t>(bytes);
    entries.push_back(std::move(found));
  }
  return entries;
}

void say(const std::string& message) {
  log(LogTopic::kernel, message);
}

std::int64_t limit_from_environment() {
  const std::string& text = environment::cache_mebibytes();
  if (text.empty()) return kDefaultMebibytes << 20;
  std::int64_t mebibytes = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mebibytes);
  PUMICE_EXPECTS(error == std::errc{} && stop == end && mebibytes >= 0 && mebibytes < 1 << 30,
                 "PUMICE_CACHE_MB = \"", text, "\": it is a whole number of mebibytes");
  return mebibytes << 20;
}

}   // namespace

CubinCache::CubinCache(fs::path folder, std::int64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

fs::path CubinCache::path_of(const Digest& key) const {
  return folder_ / (hexadecimal(key) + std::string(kSuffix));
}

std::optional<CompileResult> CubinCache::find(const Digest& key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = path_of(key);
  std::string problem;
  auto found = read_cubin(path, key, problem);
  if (!problem.empty()) say(path.string() + " is not used: " + problem);
  // The time of the last use decides who stays. A cache that is only readable keeps its order.
  if (found) ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return found;
}

void CubinCache::store(const Digest& key, const CompileResult& compiled) const {
  if (folder_.empty()) return;
  try {
    write(key, compiled);
  } catch (const std::exception& error) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      say(detail::concatenate("kernels are not kept in ", folder_.string(), ": ", error.what()));
  }
}

void CubinCache::write(const Digest& key, const CompileResult& compiled) const {
  const std::vector<std::byte> bytes = encode_cubin(key, compiled);
  if (static_cast<std::int64_t>(bytes.size()) > limit_bytes_) return;
  make_cache_folder(folder_);
  const fs::path path = path_of(key);
  if (fs::is_symlink(fs::symlink_status(path))) fs::remove(path);   // it is not ours to follow
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
  evict(path);
}

void CubinCache::evict(const fs::path& kept) const {
  using std::chrono::hours;
  std::vector<Entry> entries = entries_of(folder_);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  std::int64_t total = 0;
  for (const Entry& entry : entries)
    total += entry.bytes;
  const auto old = fs::file_time_type::clock::now() - hours(1);
  for (const Entry& entry : entries) {
    const bool abandoned = !entry.is_kernel && entry.used < old;
    const bool too_much = entry.is_kernel && total > limit_bytes_ && entry.path != kept;
    if (!abandoned && !too_much) continue;
    std::error_code gone_already;
    fs::remove(entry.path, gone_already);
    total -= entry.bytes;
  }
}

std::string CubinCache::problem() const {
  return problem_of_cache_folder(folder_);
}

CubinCache::Use CubinCache::use() const {
  Use use;
  if (folder_.empty()) return use;
  for (const Entry& entry : entries_of(folder_)) {
    use.bytes += entry.bytes;
    use.kernels += entry.is_kernel ? 1 : 0;
  }
  return use;
}

const CubinCache& process_cache() {
  static const CubinCache cache(cache_folder_from_environment(), limit_from_environment());
  return cache;
}

Digest cache_key(const Digest& source, int nvrtc_major, int nvrtc_minor) {
  Sha256 digest;
  digest.add_field("pumice cubin 1");
  digest.add_field(hexadecimal(source));
  digest.add_field(std::to_string(nvrtc_major));
  digest.add_field(std::to_string(nvrtc_minor));
  return digest.finish();
}

}   // namespace pumice::jit
