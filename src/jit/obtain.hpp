// A compiled kernel from the nearest place that has it: the bundles of an installation, the cache
// on disk, the compiler.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/jit/support.hpp>

#include "jit/bundle_set.hpp"
#include "jit/compile.hpp"
#include "jit/cubin_cache.hpp"

namespace pumice::jit {

enum class Origin : unsigned char { bundle, cache, compiler };

struct Obtained {
  CompileResult result;
  Origin origin = Origin::compiler;
};

/// `architecture` and those before it whose kernels its devices run too, the nearest first: a
/// bundle need not hold every one of a generation.
std::vector<std::string> compatible_architectures(std::string_view architecture);

/// Looks in `bundles`, then in `cache`, and compiles what neither has. Throws as `compile` does,
/// and where there is nothing to compile with, says where it looked.
Obtained obtain(const Source& source, std::string_view architecture, const CubinCache& cache,
                const BundleSet& bundles);

/// Calls `listener` after each kernel that `obtain` compiled: <pumice/jit/support.hpp>.
void listen(std::function<void(const CompiledKernel&)> listener);

/// Compiles whatever is there already, and stores it: for a file that the driver refused.
Obtained obtain_anew(const Source& source, std::string_view architecture, const CubinCache& cache);

}   // namespace pumice::jit
