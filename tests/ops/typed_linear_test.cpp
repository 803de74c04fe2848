// Linear layers of typed rows beside loops in float64.
#include <pumice/ops/typed_linear.hpp>

#include <gtest/gtest.h>

#include "ops/spmm_reference.hpp"
#include "ops/typed_linear_reference.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

TEST(TypedLinear, IsAMatrixForEachType) {
  for (const std::vector<std::int64_t>& bounds : typed_bounds()) {
    for (const Kind& kind : kKinds) {
      for (const auto& [in, out] :
           {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 3}, {32, 48}}) {
        const TypedProblem problem(bounds, in, out, kind.type);
        const TypedRows types(bounds);
        SCOPED_TRACE(std::to_string(problem.types) + " types, " + std::to_string(problem.rows) +
                     " rows, " + std::string(name_of(kind.type)));
        expect_near(typed_linear(problem.x, problem.weight, types), problem.output, kind.tolerance,
                    "output");
        expect_near(typed_linear_input_gradient(problem.grad, problem.weight, types), problem.of_x,
                    kind.tolerance, "gradient of the features");
        expect_near(typed_linear_weight_gradient(problem.x, problem.grad, types), problem.of_weight,
                    kind.tolerance, "gradient of the weight");
      }
    }
  }
}

TEST(TypedLinear, RefusesWhatDoesNotFit) {
  const TypedRows types({0, 2, 5});
  const Tensor x = Tensor::zeros({5, 4}, DType::f32), weight = Tensor::zeros({2, 4, 3}, DType::f32),
               few = Tensor::zeros({4, 4}, DType::f32),
               three = Tensor::zeros({3, 4, 3}, DType::f32),
               narrow = Tensor::zeros({2, 5, 3}, DType::f32);
  EXPECT_EQ(message_of([&] { typed_linear(few, weight, types); }),
            "typed_linear: features has 4 rows, and 5 rows have types: give one row for each");
  EXPECT_EQ(message_of([&] { typed_linear(x, three, types); }),
            "typed_linear: weight has shape [3, 4, 3]: give [2 types, C_in, C_out]");
  EXPECT_EQ(message_of([&] { typed_linear(x, narrow, types); }),
            "typed_linear: weight [2, 5, 3] takes 5 channels, and features has 4: give as many");
  EXPECT_NE(message_of([&] {
              typed_linear(x, weight, types, {.numerics = {.tf32 = true}});
            }).find("leave tf32 out"),
            std::string::npos);
  EXPECT_EQ(message_of([] {
              TypedRows({0, 3, 2});
            }),
            "TypedRows: begin[2] = 2 after 3: bounds ascend");
  EXPECT_NE(message_of([] { TypedRows({1, 2}); }).find("bounds begin with 1"), std::string::npos);
}

}   // namespace
}   // namespace pumice::test
