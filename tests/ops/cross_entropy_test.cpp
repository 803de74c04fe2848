// Cross entropy beside loops in float64: types, labels, weights, smoothing, mistakes, on the CPU
// and on a device.
#include <pumice/ops/cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/cross_entropy_reference.hpp"
#include "ops/device_support.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

constexpr std::int64_t kIgnored = 255;

struct Problem {
  std::int64_t rows;
  std::int64_t classes;
  bool weighted = false;
  double smoothing = 0;
  bool narrow = false;   // labels of i32
};

struct Operands {
  Operands(const Problem& problem, DType type)
      : scores(chance_tensor({problem.rows, problem.classes}, type, 1, -6, 6)),
        labels({problem.rows}, problem.narrow ? DType::i32 : DType::i64),
        grad_loss(Tensor::full({1}, compute_of(type), 0.75)),
        options{.ignored = kIgnored, .smoothing = problem.smoothing} {
    std::vector<double> weights(static_cast<std::size_t>(problem.classes), 1.0);
    if (problem.weighted) {
      weight = chance_tensor({problem.classes}, compute_of(type), 2, 0.25, 2);
      weights = matrix_of(weight).values;
      options.weight = weight;
    }
    std::vector<std::int64_t> chosen;
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      const std::int64_t label = row % 5 == 3 ? kIgnored : (row * 7 + 1) % problem.classes;
      chosen.push_back(label);
      if (problem.narrow)
        labels.data<std::int32_t>()[row] = static_cast<std::int32_t>(label);
      else
        labels.data<std::int64_t>()[row] = label;
    }
    expected = reference_entropy(matrix_of(scores), chosen, weights, kIgnored, problem.smoothing);
    for (double& value : expected.gradient.values)
      value *= 0.75;
  }

  Tensor scores, labels, grad_loss, weight;
  CrossEntropyOptions options;
  EntropyReference expected;
};

Matrix one(double value) {
  Matrix result(1, 1);
  result.values = {value};
  return result;
}

const Problem kProblems[] = {
    {1, 1},
    {31, 19},
    {33, 33, true},
    {33, 2, false, 0.1},
    {500, 40, true, 0.3, true},
    {65537, 3, true, 0.1},
};

/// Scores are at most 6: exponents of up to 12 in one rounding each, and as many sums as classes;
/// in float64 the sum of the weights rounds as often as there are rows, a little each time.
double work_of(const Problem& problem) {
  return 300 + static_cast<double>(problem.classes);
}

void expect_right(const Problem& problem, const Operands& o, const CrossEntropy& made,
                  const Tensor& gradient) {
  expect_near(made.loss, one(o.expected.loss), work_of(problem), 16, "loss");
  expect_near(made.weight, one(o.expected.weight), 300, o.expected.weight, "weight");
  double most = 0;
  for (const double value : o.expected.gradient.values)
    most = std::max(most, std::abs(value));
  expect_near(gradient, o.expected.gradient, work_of(problem), most, "gradient");
}

TEST(CrossEntropy, agrees_with_loops) {
  for (const Problem& problem : kProblems) {
    for (const DType type : kFloating) {
      SCOPED_TRACE(std::to_string(problem.rows) + " × " + std::to_string(problem.classes));
      const Operands o(problem, type);
      const CrossEntropy made = cross_entropy(o.scores, o.labels, o.options);
      EXPECT_EQ(made.log_sum.rows(), problem.rows);
      expect_right(problem, o, made,
                   cross_entropy_gradient(o.scores, o.labels, made, o.grad_loss, o.options));
    }
  }
}

TEST(CrossEntropyGpu, agrees_with_loops) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const Problem& problem : kProblems) {
    for (const DType type : kDeviceTypes) {
      SCOPED_TRACE(std::to_string(problem.rows) + " × " + std::to_string(problem.classes));
      const Operands o(problem, type);
      const Tensor scores = copy_to(stream, o.scores);
      const Tensor labels = copy_to(stream, o.labels);
      const Tensor grad_loss = copy_to(stream, o.grad_loss);
      CrossEntropyOptions options = o.options;
      Tensor weight;
      if (o.weight.defined()) {
        weight = copy_to(stream, o.weight);
        options.weight = weight;
      }
      const CrossEntropy made = cross_entropy(scores, labels, options);
      const Tensor gradient = cross_entropy_gradient(scores, labels, made, grad_loss, options);
      const CrossEntropy on_host{back(made.loss), back(made.weight), {}};
      expect_right(problem, o, on_host, back(gradient));
      const CrossEntropy again = cross_entropy(scores, labels, options);
      EXPECT_TRUE(same_bits(back(again.loss), on_host.loss));
      wait(stream);
    }
  }
}

TEST(CrossEntropy, has_the_gradient_of_central_differences) {
  for (const double smoothing : {0.0, 0.2}) {
    const Operands o({12, 5, true, smoothing}, DType::f64);
    const auto loss = [&](const Tensor& scores) {
      return cross_entropy(scores, o.labels, o.options).loss;
    };
    const CrossEntropy made = cross_entropy(o.scores, o.labels, o.options);
    expect_gradient(loss, o.scores, o.grad_loss,
                    cross_entropy_gradient(o.scores, o.labels, made, o.grad_loss, o.options),
                    "scores");
  }
}

/// Where nobody counts there is no mean, and no slope.
void expect_nothing_counts(const CrossEntropy& made, const Tensor& gradient) {
  EXPECT_TRUE(std::isnan(back(made.loss).to(DType::f64).data<double>()[0]));
  EXPECT_EQ(back(made.weight).to(DType::f64).data<double>()[0], 0.0);
  for (const double value : doubles(back(gradient)))
    ASSERT_EQ(value, 0.0);
}

TEST(CrossEntropy, of_nothing_is_no_number) {
  for (const std::int64_t rows : {0, 7}) {
    const Tensor scores = chance_tensor({rows, 4}, DType::f32, 1);
    const Tensor labels = Tensor::full({rows}, DType::i64, -1);
    const CrossEntropy made = cross_entropy(scores, labels);
    expect_nothing_counts(
        made, cross_entropy_gradient(scores, labels, made, Tensor::full({1}, DType::f32, 1)));
  }
}

TEST(CrossEntropyGpu, of_nothing_is_no_number) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 7}) {
    const Tensor scores = copy_to(stream, chance_tensor({rows, 4}, DType::f32, 1));
    const Tensor labels = copy_to(stream, Tensor::full({rows}, DType::i64, -1));
    const CrossEntropy made = cross_entropy(scores, labels);
    expect_nothing_counts(made, cross_entropy_gradient(scores, labels, made,
                                                       Tensor::full({1}, DType::f32, 1, stream)));
  }
}

TEST(CrossEntropy, keeps_scores_that_are_no_numbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor labels = Tensor::full({1}, DType::i64, 0);
  const auto loss_of = [&](std::vector<float> scores) {
    const Tensor row = Tensor::from<float>(scores, {1, 3});
    return *cross_entropy(row, labels).loss.data<float>();
  };
  EXPECT_TRUE(std::isnan(loss_of({1, nan, 2})));
  EXPECT_TRUE(std::isnan(loss_of({1, infinity, 2})) || std::isinf(loss_of({1, infinity, 2})));
  EXPECT_EQ(loss_of({-infinity, 0, 0}), infinity);
  EXPECT_NEAR(loss_of({500, -500, -500}), 0, 1e-6);
  EXPECT_NEAR(loss_of({-500, 500, -500}), 1000, 1e-3);
}

TEST(CrossEntropy, has_the_same_bits_on_all_threads) {
  const Operands o({5000, 7, true, 0.1}, DType::f32);
  expect_same_on_threads([&] {
    const CrossEntropy made = cross_entropy(o.scores, o.labels, o.options);
    return std::vector<Tensor>{
        made.loss, made.weight,
        cross_entropy_gradient(o.scores, o.labels, made, o.grad_loss, o.options)};
  });
}

TEST(CrossEntropy, names_what_does_not_fit) {
  const Operands o({9, 4}, DType::f32);
  Tensor wrong = o.labels.clone();
  wrong.data<std::int64_t>()[6] = 4;
  expect_sentence([&] { cross_entropy(o.scores, wrong, o.options); },
                  {"cross_entropy", "labels[6] = 4", "0 to 3", "255"});
  wrong.data<std::int64_t>()[6] = -1;
  expect_sentence([&] { cross_entropy(o.scores, wrong, o.options); }, {"labels[6] = -1"});
  expect_sentence([&] { cross_entropy(o.scores, o.scores); }, {"labels has shape", "[9]"});
  expect_sentence([&] { cross_entropy(o.scores, chance_tensor({9}, DType::f32, 1)); },
                  {"labels holds f32"});
  expect_sentence([&] { cross_entropy(Tensor({9, 0}, DType::f32), o.labels); }, {"[9, 0]"});
  expect_sentence([&] { cross_entropy(o.scores, o.labels, {.smoothing = 1.5}); },
                  {"smoothing = 1.5", "0 to 1"});
  const Tensor weight = chance_tensor({3}, DType::f32, 1);
  expect_sentence([&] { cross_entropy(o.scores, o.labels, {.weight = weight}); },
                  {"weight has shape [3]"});
  const CrossEntropy made = cross_entropy(o.scores, o.labels, o.options);
  expect_sentence([&] { cross_entropy_gradient(o.scores, o.labels, made, o.scores, o.options); },
                  {"grad_loss"});
}

/// Nobody waits to see labels: the loss is NaN, and who waits is told.
TEST(CrossEntropyGpu, reports_labels_that_are_no_class) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Operands o({9, 4}, DType::f32);
  Tensor wrong = o.labels.clone();
  wrong.data<std::int64_t>()[6] = 4;
  const Tensor scores = copy_to(stream, o.scores);
  const Tensor labels = copy_to(stream, wrong);
  const CrossEntropy made = cross_entropy(scores, labels, {.ignored = kIgnored});
  expect_sentence([&] { wait(stream); }, {"cross_entropy: labels[6] = 4", "0 to 3"});
  EXPECT_TRUE(std::isnan(*back(made.loss).data<float>()));
}

}   // namespace
}   // namespace pumice::test
