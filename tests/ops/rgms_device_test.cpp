// Relational products on a device beside a loop over edges in float64.
// Covers ops/rgms.
#include <gtest/gtest.h>

#include <pumice/core/stream.hpp>

#include "ops/rgms_reference.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

TEST(RgmsGpu, is_what_its_definition_says) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const TypedCase& one : typed_cases()) {
    for (const Kind& kind : kKinds) {
      if (kind.type == DType::f64 || (on_emulator() && kind.type == DType::bf16)) continue;
      for (const bool weighted : {true, false}) {
        const RgmsProblem problem(one, kind.type, weighted);
        TypedGraph graph = one.graph(stream);
        check(problem, graph, stream, kind);
        if (!weighted && (!on_emulator() || kind.type == DType::f32))
          check_roots(problem, graph, stream, kind);
      }
    }
  }
}

}   // namespace
}   // namespace pumice::test
