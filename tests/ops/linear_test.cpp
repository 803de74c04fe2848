// Linear layers against a triple loop.
#include <pumice/ops/linear.hpp>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

TEST(Linear, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    for (const auto& [in, out] :
         {std::pair<std::int64_t, std::int64_t>{3, 5}, {96, 33}, {1, 1}, {0, 4}, {4, 0}}) {
      if (rows > 1000 && in > 5) continue;
      for (const DType type : kFloating) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(in) + " to " +
                     std::to_string(out));
        const Tensor x = chance_tensor({rows, in}, type, 1);
        const Tensor w = chance_tensor({in, out}, type, 2);
        const Tensor b = chance_tensor({out}, compute_of(type), 3);
        const Tensor g = chance_tensor({rows, out}, type, 4);
        Matrix y = reference::product(matrix_of(x), matrix_of(w));
        const auto k = static_cast<double>(in);
        const auto m = static_cast<double>(out);
        const auto n = static_cast<double>(rows);
        expect_near(linear(x, w), y, k, k, "without bias");
        const Matrix bias = matrix_of(b);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < out; ++c)
            y.at(r, c) += bias.at(0, c);
        }
        expect_near(linear(x, w, b), y, k + 1, k + 1, "with bias");
        expect_near(linear_input_gradient(g, w),
                    reference::product(matrix_of(g), reference::transpose(matrix_of(w))), m, m,
                    "input gradient");
        const Tensor stored = chance_tensor({out, in}, type, 5);
        expect_near(linear_transposed_input_gradient(g, stored),
                    reference::product(matrix_of(g), matrix_of(stored)), m, m,
                    "input gradient, stored weight");
        expect_near(linear_weight_gradient(x, g),
                    reference::product(reference::transpose(matrix_of(x)), matrix_of(g)), n, n,
                    "weight gradient");
        expect_near(linear_bias_gradient(g),
                    reference::item_sum(matrix_of(g),
                                        reference::Rows(static_cast<std::size_t>(rows)), 1, false),
                    type == DType::f64 ? n : 1, type == DType::f64 ? n : 0, "bias gradient");
      }
    }
  }
}

TEST(Linear, gradients_are_central_differences) {
  const Tensor x = chance_tensor({33, 4}, DType::f64, 1);
  const Tensor w = chance_tensor({4, 3}, DType::f64, 2);
  const Tensor b = chance_tensor({3}, DType::f64, 3);
  const Tensor g = chance_tensor({33, 3}, DType::f64, 4);
  expect_gradient([&](const Tensor& t) { return linear(t, w, b); }, x, g,
                  linear_input_gradient(g, w), "input");
  expect_gradient([&](const Tensor& t) { return linear(x, t, b); }, w, g,
                  linear_weight_gradient(x, g), "weight");
  expect_gradient([&](const Tensor& t) { return linear(x, w, t); }, b, g, linear_bias_gradient(g),
                  "bias");
}

TEST(Linear, threads_do_not_change_a_bit) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor x = chance_tensor({65537, 12}, type, 1);
    const Tensor w = chance_tensor({12, 9}, type, 2);
    const Tensor g = chance_tensor({65537, 9}, type, 3);
    expect_same_on_threads([&] {
      return std::vector<Tensor>{linear(x, w), linear_input_gradient(g, w),
                                 linear_weight_gradient(x, g), linear_bias_gradient(g)};
    });
  }
}

TEST(Linear, wrong_shapes_are_sentences) {
  const Tensor x = chance_tensor({9, 4}, DType::f32, 1);
  const Tensor w = chance_tensor({4, 3}, DType::f32, 2);
  expect_sentence(
      [&] {
        linear(x, chance_tensor({3, 4}, DType::f32, 2));
      },
      {"[3, 4]", "[9, 4]", "transposed"});
  expect_sentence([&] { linear(x, chance_tensor({4, 3}, DType::f64, 2)); }, {"f64", "f32"});
  expect_sentence([&] { linear(x, w, chance_tensor({4}, DType::f32, 2)); }, {"bias", "[4]", "[3]"});
  expect_sentence([&] { linear_input_gradient(x, w); }, {"grad_output", "3"});
  expect_sentence(
      [&] {
        linear_transposed_input_gradient(chance_tensor({9, 3}, DType::f32, 2), w);
      },
      {"linear_transposed_input_gradient", "grad_output", "4"});
  expect_sentence(
      [&] {
        linear_weight_gradient(x, chance_tensor({8, 3}, DType::f32, 2));
      },
      {"grad_output", "9"});
  const ConvolutionPlan plan{.dataflow = Dataflow::implicit_gemm};
  expect_sentence([&] { linear(x, w, {}, {.plan = &plan}); }, {"a plan is for a device", "leave"});
}

}   // namespace
}   // namespace pumice::test
