// Bundle, cache, compiler: in this order.
#include "jit/obtain.hpp"

#include <dlfcn.h>

#include <algorithm>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/environment.hpp"
#include "jit/cubin_file.hpp"
#include "jit/nvrtc.hpp"

namespace pumice::jit {
namespace {

namespace fs = std::filesystem;

void say(const Source& source, std::string_view architecture, const std::string& what) {
  if (logging(LogTopic::kernel))
    log(LogTopic::kernel, detail::concatenate(source.name, " for ", architecture, ": ", what));
}

std::optional<CompileResult> find_in(const fs::path& bundle, const Digest& digest) {
  const fs::path path = bundle / (hexadecimal(digest) + ".cubin");
  std::string problem;
  auto found = read_cubin(path, digest, problem);
  if (!problem.empty() && logging(LogTopic::kernel))
    log(LogTopic::kernel, path.string() + " is not used: " + problem);
  return found;
}

std::string spills_of(const CompileResult& result) {
  std::string text;
  for (const KernelReport& kernel : result.kernels) {
    if (kernel.spill_store_bytes + kernel.spill_load_bytes == 0) continue;
    text += detail::concatenate("; ", kernel.name, " spills ", kernel.spill_store_bytes, " bytes");
  }
  return text;
}

}   // namespace

std::vector<fs::path> bundle_folders() {
  if (!environment::bundle_folder().empty()) return {environment::bundle_folder()};
  Dl_info info{};
  static const int kHere = 0;   // lies in the library, or in the program it is linked into
  if (dladdr(&kHere, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  if (error) return {};
  const fs::path folder = file.parent_path();
  return {folder / "pumice" / "kernels", folder.parent_path() / "lib" / "pumice" / "kernels"};
}

Obtained obtain(const Source& source, std::string_view architecture, const CubinCache& cache,
                const std::vector<fs::path>& bundles) {
  const Digest digest = source_digest(source, architecture);
  for (const fs::path& bundle : bundles) {
    if (auto found = find_in(bundle, digest)) {
      say(source, architecture, "in the bundle " + bundle.string());
      return {std::move(*found), Origin::bundle};
    }
  }
  const NvrtcState& compiler = nvrtc_state();
  const Digest key = cache_key(digest, compiler.major, compiler.minor);
  if (auto found = cache.find(key)) {
    say(source, architecture, "in the cache, " + cache.path_of(key).string());
    return {std::move(*found), Origin::cache};
  }
  return obtain_anew(source, architecture, cache);
}

Obtained obtain_anew(const Source& source, std::string_view architecture, const CubinCache& cache) {
  CompileResult result = compile(source, architecture);
  const NvrtcState& compiler = nvrtc_state();
  const Digest key = cache_key(source_digest(source, architecture), compiler.major, compiler.minor);
  say(source, architecture,
      detail::concatenate("compiled in ", result.milliseconds, " ms", spills_of(result), ", to ",
                          cache.path_of(key).string()));
  cache.store(key, result);
  return {std::move(result), Origin::compiler};
}

}   // namespace pumice::jit
