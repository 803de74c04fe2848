// The table of sources for types.
#include "kernels/cuda/source_table.hpp"

#include "plan/spec_names.hpp"

namespace pumice::cuda {

const jit::Source& source_for(ElementType type, const char* name, std::string (*text)(ElementType),
                              bool writes_only_features) {
  static SourceTable<std::string> sources;
  return sources.get(std::string(name) + "_" + name_of(type), [&](const std::string& full) {
    return jit::Source{
        .name = full, .text = text(type), .writes_only_features = writes_only_features};
  });
}

}   // namespace pumice::cuda
