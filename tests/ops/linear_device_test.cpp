// Linear layers on a CUDA device beside those of the CPU, forward and backward, by every plan.
// Covers linear on a device.
#include <pumice/ops/linear.hpp>

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/buffer.hpp>
#include <pumice/core/row_count.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/plan/choose.hpp>

#include "kernels/cuda/cublas.hpp"
#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

TEST(LinearGradientsGpu, agree_with_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 33, 20011}) {
    for (const auto& [in, out] : {std::pair{4, 9}, {64, 64}, {96, 20}, {33, 129}}) {
      for (const DType type : kDeviceTypes) {
        const Tensor x = chance_tensor({rows, in}, type, 1);
        const Tensor dy = chance_tensor({rows, out}, type, 2);
        const Tensor w = chance_tensor({in, out}, type, 3);
        const Tensor gpu_x = copy_to(stream, x);
        const Tensor gpu_dy = copy_to(stream, dy);
        const double count = sum_of(rows);
        expect_agrees(linear_input_gradient(gpu_dy, copy_to(stream, w)),
                      linear_input_gradient(dy, w), out, out, "input gradient");
        const Tensor stored = chance_tensor({out, in}, type, 4);   // as PyTorch stores it
        expect_agrees(linear_transposed_input_gradient(gpu_dy, copy_to(stream, stored)),
                      linear_transposed_input_gradient(dy, stored), out, out,
                      "input gradient, stored weight");
        // Tensor cores cut the rest of a product off instead of rounding it: a bias of half a unit
        // for each of the few hundred additions of a block.
        for (const bool deterministic : {false, true}) {
          expect_agrees(
              linear_weight_gradient(gpu_x, gpu_dy, {.numerics = {.deterministic = deterministic}}),
              linear_weight_gradient(x, dy), kWork, count, "weight gradient");
        }
        expect_agrees(linear_bias_gradient(gpu_dy), linear_bias_gradient(dy), kWork, count,
                      "bias gradient");
        expect_agrees(bias_gradient(gpu_dy), bias_gradient(dy), kWork, count, "bias gradient");
      }
    }
  }
}

TEST(LinearTf32Gpu, is_asked_for) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Tensor x = chance_tensor({500, 48}, DType::f32, 1);
  const Tensor w = chance_tensor({48, 20}, DType::f32, 2);
  const Tensor dy = chance_tensor({500, 20}, DType::f32, 3);
  const Tensor gpu_x = copy_to(stream, x), gpu_w = copy_to(stream, w), gpu_dy = copy_to(stream, dy);
  const LinearOptions tf32{.numerics = {.tf32 = true}};
  expect_agrees(linear(gpu_x, gpu_w, {}, tf32), linear(x, w), kTf32Roundings, 48, "forward");
  expect_agrees(linear_input_gradient(gpu_dy, gpu_w, tf32), linear_input_gradient(dy, w),
                kTf32Roundings, 20, "input gradient");
  expect_agrees(linear_weight_gradient(gpu_x, gpu_dy, tf32), linear_weight_gradient(x, dy),
                kTf32Roundings, 500, "weight gradient");
  expect_sentence([&] { linear(x, w, {}, tf32); }, {"tf32", "CPU"});
}

bool needs_cublas(const ConvolutionPlan& plan) {
  return plan.dataflow == Dataflow::gather_gemm_scatter;
}
bool has_cublas() {
  return !on_emulator() && cuda::cublas_state().reason.empty();
}

/// Operands of one layer, there and on the CPU.
struct LinearOperands {
  LinearOperands(std::int64_t rows, std::int64_t in, std::int64_t out, DType type, StreamView on)
      : x(chance_tensor({rows, in}, type, 1)),
        dy(chance_tensor({rows, out}, type, 2)),
        w(chance_tensor({in, out}, type, 3)),
        stored(chance_tensor({out, in}, type, 4)),
        bias(chance_tensor({out}, DType::f32, 5)),
        gpu_x(copy_to(on, x)),
        gpu_dy(copy_to(on, dy)),
        gpu_w(copy_to(on, w)),
        gpu_stored(copy_to(on, stored)),
        gpu_bias(copy_to(on, bias)) {}
  Tensor x, dy, w, stored, bias, gpu_x, gpu_dy, gpu_w, gpu_stored, gpu_bias;
};

/// Each plan that comes into question in one direction computes what the CPU computes.
void expect_agreement(const LinearOperands& o, Direction direction, const LinearOptions& options) {
  const bool back = direction == Direction::input_gradient;
  const std::int64_t in = o.x.extent(1), out = o.dy.extent(1), rows = o.x.rows();
  const auto of_in = static_cast<double>(in), of_out = static_cast<double>(out);
  const ConvolutionProblem problem =
      linear_problem(direction, rows, back ? out : in, back ? in : out, o.x.dtype(), options);
  const double work = options.numerics.tf32 ? kTf32Roundings : kWork;
  int plans = 0;
  for (const Candidate& one : candidates(problem, target_of(kGpu))) {
    if (needs_cublas(one.plan) && !has_cublas()) continue;
    if (on_emulator() && ++plans > 2) break;   // each kernel is seconds to compile there
    SCOPED_TRACE(to_text(problem) + ", " + one.plan.name());
    LinearOptions given = options;
    given.plan = &one.plan;
    switch (direction) {
      case Direction::forward:
        expect_agrees(linear(o.gpu_x, o.gpu_w, o.gpu_bias, given), linear(o.x, o.w, o.bias), work,
                      of_in, "linear");
        expect_agrees(linear_transposed(o.gpu_x, o.gpu_stored, o.gpu_bias, given),
                      linear_transposed(o.x, o.stored, o.bias), work, of_in, "stored weight");
        break;
      case Direction::input_gradient:
        expect_agrees(linear_input_gradient(o.gpu_dy, o.gpu_w, given),
                      linear_input_gradient(o.dy, o.w), work, of_out, "linear");
        expect_agrees(linear_transposed_input_gradient(o.gpu_dy, o.gpu_stored, given),
                      linear_transposed_input_gradient(o.dy, o.stored), work, of_out,
                      "stored weight");
        break;
      case Direction::weight_gradient:
        expect_agrees(linear_weight_gradient(o.gpu_x, o.gpu_dy, given),
                      linear_weight_gradient(o.x, o.dy), work, sum_of(rows), "linear");
        break;
    }
  }
}

TEST(LinearPlansGpu, agree_with_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {1, 33, 5001}) {
    if (on_emulator() && rows != 33) continue;
    for (const auto& [in, out] : {std::pair{16, 32}, {9, 70}}) {
      if (on_emulator() && in == 9) continue;
      for (const DType type : kDeviceTypes) {
        const LinearOperands operands(rows, in, out, type, stream);
        for (const bool tf32 : {false, true}) {
          if (tf32 && type != DType::f32) continue;
          for (const Direction direction :
               {Direction::forward, Direction::input_gradient, Direction::weight_gradient})
            expect_agreement(operands, direction, {.numerics = {.tf32 = tf32}});
        }
      }
    }
  }
}

/// The count lies on the device; a plan of gather–GEMM–scatter waits for it.
TEST(LinearPlansGpu, count_the_rows_in_use) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  constexpr std::int64_t kRoom = 70, kUsed = 33;
  const LinearOperands o(kRoom, 16, 32, DType::f32, stream);
  const auto word = std::make_shared<Buffer<std::int64_t>>(1, stream);
  copy_async(word->data(), kGpu, &kUsed, Device{}, sizeof(kUsed), stream);
  const RowCount count =
      RowCount::on_device(std::shared_ptr<std::int64_t>(word, word->data()), kRoom, kGpu);
  const std::vector<double> expected = doubles(linear(o.x, o.w, o.bias));
  const ConvolutionProblem problem = linear_problem(Direction::forward, kRoom, 16, 32, DType::f32);
  int tiles = 0;
  for (const Candidate& one : candidates(problem, target_of(kGpu))) {
    SCOPED_TRACE(one.plan.name());
    if (needs_cublas(one.plan) && !has_cublas()) continue;
    if (on_emulator() && one.plan.tile && ++tiles > 2) continue;
    const std::vector<double> made =
        doubles(back(linear(o.gpu_x, o.gpu_w, o.gpu_bias, {.rows = &count, .plan = &one.plan})));
    for (std::size_t i = 0; i < kUsed * 32; ++i)
      ASSERT_NEAR(made[i], expected[i], 1e-5) << i;
  }
}

TEST(LinearPlansGpu, decide_by_what_adds_up) {
  const LinearOptions deterministic{.numerics = {.deterministic = true}};
  const auto problem = [&](Direction direction) {
    return linear_problem(direction, 33, 16, 16, DType::f32, deterministic);
  };
  EXPECT_FALSE(problem(Direction::forward).numerics.deterministic);
  EXPECT_FALSE(problem(Direction::input_gradient).numerics.deterministic);
  EXPECT_TRUE(problem(Direction::weight_gradient).numerics.deterministic);
}

}   // namespace
}   // namespace pumice
