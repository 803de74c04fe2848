// Linear layers of typed rows on a device beside loops in float64.
// Covers formats/cuda/typed_formats.
#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "ops/spmm_reference.hpp"
#include "ops/typed_linear_reference.hpp"
#include "support/gpu.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

TEST(TypedLinearGpu, is_a_matrix_for_each_type) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::vector<std::int64_t>& bounds : typed_bounds()) {
    for (const Kind& kind : kKinds) {
      if (kind.type == DType::f64 || (on_emulator() && kind.type == DType::bf16)) continue;
      // Of 16 channels the weights of a few types stay in shared memory, of 24 none do.
      const TypedProblem problem(bounds, 16, bounds.size() % 2 == 0 ? 24 : 16, kind.type);
      SCOPED_TRACE(std::to_string(problem.types) + " types, " + std::to_string(problem.rows) +
                   " rows, " + std::string(name_of(kind.type)));
      const TypedRows types(bounds, stream);
      const Tensor x = copy_to(stream, problem.x), weight = copy_to(stream, problem.weight),
                   grad = copy_to(stream, problem.grad);
      expect_near(copy_to_host(typed_linear(x, weight, types), stream), problem.output,
                  kind.tolerance, "output");
      expect_near(copy_to_host(typed_linear_input_gradient(grad, weight, types), stream),
                  problem.of_x, kind.tolerance, "gradient of the features");
      const TypedLinearOptions fixed{.numerics = {.deterministic = true}};
      const Tensor of_weight =
          copy_to_host(typed_linear_weight_gradient(x, grad, types, fixed), stream);
      expect_near(of_weight, problem.of_weight, kind.tolerance, "gradient of the weight");
      for (int again = 0; again < (on_emulator() ? 1 : 100); ++again) {
        ASSERT_TRUE(same_bits(
            copy_to_host(typed_linear_weight_gradient(x, grad, types, fixed), stream), of_weight));
      }
    }
  }
}

}   // namespace
}   // namespace pumice::test
