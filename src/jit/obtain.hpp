// A compiled kernel from the nearest place that has it: the bundle of an installation, the cache on
// disk, the compiler.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "jit/compile.hpp"
#include "jit/cubin_cache.hpp"

namespace pumice::jit {

enum class Origin : unsigned char { bundle, cache, compiler };

struct Obtained {
  CompileResult result;
  Origin origin = Origin::compiler;
};

/// Where kernels compiled ahead are looked for: PUMICE_BUNDLE, else pumice/kernels beside the file
/// that holds this library, else ../lib/pumice/kernels. A file there has the format of the cache
/// and the name of its source_digest, so that it is found without a compiler.
std::vector<std::filesystem::path> bundle_folders();

/// Looks in `bundles`, then in `cache`, and compiles what neither has. Throws as `compile` does.
Obtained obtain(const Source& source, std::string_view architecture, const CubinCache& cache,
                const std::vector<std::filesystem::path>& bundles);

/// Compiles whatever is there already, and stores it: for a file that the driver refused.
Obtained obtain_anew(const Source& source, std::string_view architecture, const CubinCache& cache);

}   // namespace pumice::jit
