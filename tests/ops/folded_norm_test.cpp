// Folded norms beside the norm in evaluation itself.
#include <pumice/ops/folded_norm.hpp>

#include <algorithm>
#include <cstdint>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

/// A norm of `channels` and what it looks at.
struct Norm {
  Norm(std::int64_t channels, DType statistics, DType parameters, DType layer, std::uint64_t seed)
      : mean(chance_tensor({channels}, statistics, seed)),
        variance(chance_tensor({channels}, statistics, seed + 1, 0.5, 2)),
        weight(chance_tensor({channels}, parameters, seed + 2, 0.5, 2)),
        bias(chance_tensor({channels}, parameters, seed + 3)),
        before(chance_tensor({channels}, layer, seed + 4)) {}
  SettledNorm settled() const { return {mean, variance, weight, bias, before, 1e-3}; }

  Tensor mean, variance, weight, bias, before;
};

TEST(FoldedNorm, is_the_norm_in_evaluation_of_a_sum) {
  for (const std::int64_t channels : {0, 1, 5, 33}) {
    const Norm norm(channels, DType::f64, DType::f64, DType::f64, 1);
    const Tensor x = chance_tensor({7, channels}, DType::f64, 9);
    const ScaleShift folded =
        fold_batch_norm(norm.mean, norm.variance, norm.weight, norm.bias, norm.before, 1e-3);
    Tensor sum = x.clone();
    for (std::int64_t i = 0; i < x.elements(); ++i)
      sum.data<double>()[i] += norm.before.data<double>()[i % channels];
    const Tensor expected =
        batch_norm_inference(sum, norm.mean, norm.variance, norm.weight, norm.bias, 1e-3);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const double y = x.data<double>()[i] * folded.scale.data<double>()[i % channels] +
                       folded.shift.data<double>()[i % channels];
      EXPECT_NEAR(y, expected.data<double>()[i], 1e-12);
    }
  }
}

/// Each part may be of a type of its own, and is read as the same number in the compute type.
TEST(FoldedNorm, parameters_in_half_precision_are_those_widened) {
  for (const DType type : {DType::f16, DType::bf16}) {
    const Norm norm(5, type, DType::f32, type, 3);
    const ScaleShift folded =
        fold_batch_norm(norm.mean, norm.variance, norm.weight, norm.bias, norm.before);
    const ScaleShift wide = fold_batch_norm(norm.mean.to(DType::f32), norm.variance.to(DType::f32),
                                            norm.weight, norm.bias, norm.before.to(DType::f32));
    EXPECT_EQ(folded.scale.dtype(), DType::f32);
    expect_equal(folded.scale, matrix_of(wide.scale), "scale");
    expect_equal(folded.shift, matrix_of(wide.shift), "shift");
  }
}

TEST(FoldedNorm, many_at_once_are_each_by_itself) {
  std::vector<Norm> norms;
  std::vector<SettledNorm> settled;
  for (const std::int64_t channels : {3, 32, 1, 0, 33, 4})
    norms.emplace_back(channels, channels == 4 ? DType::f16 : DType::f32, DType::f32, DType::bf16,
                       10 + norms.size());
  for (const Norm& norm : norms)
    settled.push_back(norm.settled());
  settled[2].weight = settled[2].bias = settled[1].added_before = {};
  const ScaleShifts all = fold_batch_norms(settled);
  ASSERT_EQ(all.of_norm.size(), settled.size());
  for (std::size_t i = 0; i < settled.size(); ++i) {
    const SettledNorm& norm = settled[i];
    const ScaleShift one = fold_batch_norm(norm.mean, norm.variance, norm.weight, norm.bias,
                                           norm.added_before, norm.epsilon);
    EXPECT_TRUE(std::ranges::equal(all.of_norm[i].scale.span<float>(), one.scale.span<float>()));
    EXPECT_TRUE(std::ranges::equal(all.of_norm[i].shift.span<float>(), one.shift.span<float>()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.of_norm[i].scale.raw()) % 16, 0u);
  }
  EXPECT_FALSE(fold_batch_norms({}).memory.defined());
}

/// y = a · scale + b · scale of the shortcut + one shift.
TEST(FoldedNorm, the_shift_of_a_shortcut_joins_that_of_what_it_is_added_to) {
  for (const std::int64_t channels : {1, 5, 33}) {
    const Norm main(channels, DType::f64, DType::f64, DType::f64, 1);
    const Norm other(channels, DType::f64, DType::f64, DType::f64, 20);
    SettledNorm shortcut = other.settled();
    shortcut.added_before = {};
    shortcut.epsilon = 0.5;
    const Tensor a = chance_tensor({7, channels}, DType::f64, 9);
    const Tensor b = chance_tensor({7, channels}, DType::f64, 10);
    SettledNorm both = main.settled();
    both.added_before = {};
    both.shortcut = &shortcut;
    const SettledNorm norms[] = {shortcut, both};
    const ScaleShifts folded = fold_batch_norms(norms);
    const Tensor of_a =
        batch_norm_inference(a, main.mean, main.variance, main.weight, main.bias, 1e-3);
    const Tensor of_b =
        batch_norm_inference(b, other.mean, other.variance, other.weight, other.bias, 0.5);
    for (std::int64_t i = 0; i < a.elements(); ++i) {
      const auto at = [&](const ConstTensorView& view) {
        return view.data<double>()[i % channels];
      };
      const double y = a.data<double>()[i] * at(folded.of_norm[1].scale) +
                       b.data<double>()[i] * at(folded.of_norm[0].scale) +
                       at(folded.of_norm[1].shift);
      EXPECT_NEAR(y, of_a.data<double>()[i] + of_b.data<double>()[i], 1e-12);
    }
  }
}

TEST(FoldedNorm, wrong_arguments_are_named) {
  const Norm norm(5, DType::f32, DType::f32, DType::f32, 1);
  const Norm wide(5, DType::f64, DType::f64, DType::f64, 1);
  const Tensor short_one = chance_tensor({4}, DType::f32, 1);
  const auto fold = [](const SettledNorm& one) { return fold_batch_norms({&one, 1}); };
  SettledNorm wrong = norm.settled();
  wrong.bias = short_one;
  expect_sentence([&] { fold(wrong); }, {"bias", "[4]", "[5]"});
  wrong = norm.settled();
  wrong.epsilon = -1;
  expect_sentence([&] { fold(wrong); }, {"epsilon", "-1"});
  const Norm narrow(4, DType::f32, DType::f32, DType::f32, 1);
  const SettledNorm fewer = narrow.settled(), deeper = wide.settled(), biased = norm.settled();
  const auto beside = [&](const SettledNorm& shortcut) {
    SettledNorm one = norm.settled();
    one.shortcut = &shortcut;
    fold(one);
  };
  expect_sentence([&] { beside(fewer); }, {"shortcut", "[4]", "[5]"});
  expect_sentence([&] { beside(deeper); }, {"shortcut", "f64", "f32"});
  expect_sentence([&] { beside(biased); }, {"shortcut", "bias before it"});
  const SettledNorm both[] = {norm.settled(), wide.settled()};
  expect_sentence([&] { fold_batch_norms(both); }, {"f32", "f64", "compute type"});
}

}   // namespace
}   // namespace pumice::test
