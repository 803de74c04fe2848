// Operators that are told how many of their rows are in use: the bits are those of these rows
// alone, whatever the others hold and however many they are. The others hold NaN, so that reading
// one shows, and results lie in memory that was marked, so that writing one shows.
// Covers rows_in_use.hpp, and counts in linear layers, norms, losses and sums over rows. That the
// numbers of the rows alone are right is tested with each operator.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <pumice/ops/convolution.hpp>
#include <pumice/ops/cross_entropy.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>
#include <pumice/ops/rows.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/device_support.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

constexpr std::byte kMark{0x7f};   // a finite number in every type, and no small one

/// Marked memory, wherever a result goes.
class Marked final : public Results {
 public:
  Tensor make(const Shape& shape, DType dtype, StreamView stream) override {
    Tensor made(shape, dtype, stream);
    fill_bytes_async(made.raw(), kMark, made.bytes(), stream);
    return made;
  }
};

/// What is behind the rows in use.
enum class Tail { marked, zeros };

struct Result {
  std::string name;
  Tensor values;
  bool has_rows = false;   // one for each of the operands' rows
  Tail tail = Tail::marked;
};
using ResultList = std::vector<Result>;

/// Operands with `used` rows of numbers and NaN in the others; their count, unless all are in use
/// and it is not wanted.
struct Operands {
  Operands(std::int64_t used_rows, std::int64_t capacity, std::int64_t channels, DType type,
           StreamView on, bool with_count)
      : used(used_rows), stream(on) {
    const auto padded = [&](std::uint64_t seed) {
      return with_nan(chance_tensor({used, channels}, type, seed, 1, 3), capacity);
    };
    const auto vector = [&](std::uint64_t seed) {
      return there(chance_tensor({channels}, compute_of(type), seed, 0.5, 1.5));
    };
    x = padded(1);
    y = padded(2);
    residual = padded(3);
    scale = vector(4);
    shift = vector(5);
    weight = there(chance_tensor({channels, channels}, type, 6));
    one = there(Tensor::full({1}, compute_of(type), 0.5));
    Tensor classes({used}, DType::i64);
    for (std::int64_t row = 0; row < used; ++row)
      classes.data<std::int64_t>()[row] = row % (channels + 1) - 1;
    label = with_nan(classes, capacity);
    word = std::make_shared<Tensor>(Shape{1}, DType::i64);
    *word->data<std::int64_t>() = used;
    word = std::make_shared<Tensor>(there(*word));
    count = RowCount::on_device(std::shared_ptr<std::int64_t>(word, word->data<std::int64_t>()),
                                capacity, stream.device);
    if (with_count) rows = &count;
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  Tensor there(const Tensor& tensor) const {
    return stream.device.kind == DeviceKind::cpu ? tensor : copy_to(stream, tensor);
  }
  Tensor with_nan(const Tensor& tensor, std::int64_t capacity) const {
    std::vector<std::int64_t> extents(tensor.shape().extents().begin(),
                                      tensor.shape().extents().end());
    extents[0] = capacity;
    Tensor all(Shape(extents), tensor.dtype());
    if (all.bytes() > 0) std::memset(all.raw(), 0xff, all.bytes());
    if (tensor.bytes() > 0) std::memcpy(all.raw(), tensor.raw(), tensor.bytes());
    return there(all);
  }

  std::int64_t used;
  StreamView stream;
  Tensor x, y, residual, scale, shift, weight, one, label;
  std::shared_ptr<Tensor> word;
  RowCount count;
  const RowCount* rows = nullptr;   // as operators are told
};

using Run = std::function<ResultList(const Operands&)>;

ResultList trained_norm(const Operands& in) {
  Marked marked;
  Tensor mean = in.shift.clone();
  Tensor variance = in.scale.clone();
  Tensor batches = in.there(Tensor::zeros({1}, DType::i64));
  const Normalized made =
      batch_norm_training(in.x, in.scale, in.shift, mean.view(), variance.view(),
                          {.momentum = 0.25, .batches = batches.view(), .rows = in.rows},
                          {.residual = in.residual, .relu = true},
                          {.output = marked, .mean = marked, .inverse_deviation = marked});
  const NormGradients gradients = batch_norm_training_gradient(
      in.x, in.y, in.scale, made.mean, made.inverse_deviation,
      {.output = made.output, .residual = true, .rows = in.rows},
      {.features = marked, .weight = marked, .bias = marked, .residual = marked});
  return {{"output", made.output, true},
          {"mean", made.mean},
          {"inverse deviation", made.inverse_deviation},
          {"running mean", mean},
          {"running variance", variance},
          {"batches", batches},
          {"gradient of the features", gradients.features, true},
          {"gradient of the residual", gradients.residual, true},
          {"gradient of the weight", gradients.weight},
          {"gradient of the bias", gradients.bias}};
}

ResultList settled_norm(const Operands& in) {
  Marked marked;
  const Tensor output =
      batch_norm_inference(in.x, in.shift, in.scale, in.scale, in.shift, 1e-5, in.rows, marked);
  const NormGradients gradients =
      batch_norm_inference_gradient(in.x, in.y, in.shift, in.scale, in.scale, 1e-5, in.rows,
                                    {.features = marked, .weight = marked, .bias = marked});
  return {{"output", output, true},
          {"gradient of the features", gradients.features, true},
          {"gradient of the weight", gradients.weight},
          {"gradient of the bias", gradients.bias}};
}

ResultList norm_of_rows(const Operands& in) {
  Marked marked;
  const Normalized made =
      layer_norm(in.x, in.scale, in.shift, 1e-5, in.rows,
                 {.output = marked, .mean = marked, .inverse_deviation = marked});
  const NormGradients gradients =
      layer_norm_gradient(in.x, in.y, in.scale, made.mean, made.inverse_deviation, in.rows,
                          {.features = marked, .weight = marked, .bias = marked});
  return {{"output", made.output, true},
          {"mean", made.mean, true},
          {"inverse deviation", made.inverse_deviation, true},
          {"gradient of the features", gradients.features, true},
          {"gradient of the weight", gradients.weight},
          {"gradient of the bias", gradients.bias}};
}

/// With the plan for the rows in use, so that it is the same in all rooms.
ResultList dense(const Operands& in) {
  Marked marked;
  const bool on_device = in.stream.device.kind == DeviceKind::cuda;
  const std::int64_t channels = in.x.extent(1);
  LinearOptions options{.numerics = {.deterministic = true}, .rows = in.rows};
  PlanPtr plan;
  const auto planned = [&](Direction direction) {
    if (!on_device) return options;
    plan = choose(linear_problem(direction, std::max<std::int64_t>(in.used, 1), channels, channels,
                                 in.x.dtype(), options),
                  target_of(in.stream.device));
    LinearOptions with_plan = options;
    with_plan.plan = plan.get();
    return with_plan;
  };
  ResultList results;
  results.push_back(
      {"linear", linear(in.x, in.weight, in.shift, planned(Direction::forward), marked), true});
  results.push_back(
      {"linear_transposed",
       linear_transposed(in.x, in.weight, in.shift, planned(Direction::forward), marked), true});
  results.push_back(
      {"input gradient",
       linear_input_gradient(in.y, in.weight, planned(Direction::input_gradient), marked), true});
  results.push_back({"input gradient of linear_transposed",
                     linear_transposed_input_gradient(in.y, in.weight,
                                                      planned(Direction::input_gradient), marked),
                     true});
  results.push_back(
      {"weight gradient",
       linear_weight_gradient(in.x, in.y, planned(Direction::weight_gradient), marked)});
  results.push_back({"bias gradient", linear_bias_gradient(in.y, in.rows, marked)});
  results.push_back({"bias gradient of a convolution", bias_gradient(in.y, in.rows, marked)});
  return results;
}

ResultList entropy(const Operands& in) {
  Marked marked;
  const CrossEntropyOptions options{.weight = in.scale, .smoothing = 0.25, .rows = in.rows};
  const CrossEntropy made =
      cross_entropy(in.x, in.label, options, {.loss = marked, .weight = marked, .log_sum = marked});
  return {{"loss", made.loss},
          {"weight", made.weight},
          {"gradient", cross_entropy_gradient(in.x, in.label, made, in.one, options, marked), true,
           Tail::zeros}};
}

ResultList cleared(const Operands& in) {
  Marked marked;
  Tensor in_place = in.x.clone();
  clear_tail(in_place.view(), in.count);
  return {{"in place", in_place, true, Tail::zeros},
          {"in memory of its own", cleared_tail(in.x, in.count, marked), true, Tail::zeros}};
}

struct Case {
  const char* name;
  Run run;
  std::int64_t least_rows = 0;
};
const Case kCases[] = {{"trained norm", trained_norm, 2}, {"settled norm", settled_norm},
                       {"norm of rows", norm_of_rows},    {"dense layer", dense},
                       {"cross entropy", entropy},        {"cleared", cleared}};
// One row is not tried here, see below; none is.
bool takes(const Case& one, std::int64_t rows) {
  return rows == 0 || rows >= one.least_rows;
}

/// `result`, of `capacity` rows, beside that of the rows alone.
void expect_same(const Result& result, const Result& alone, std::int64_t capacity) {
  SCOPED_TRACE(result.name);
  const Tensor host = back(result.values);
  const Tensor expected = back(alone.values);
  if (!result.has_rows) {
    EXPECT_TRUE(same_bits(host, expected));
    return;
  }
  ASSERT_EQ(host.rows(), capacity);
  if (expected.bytes() > 0) {
    EXPECT_EQ(std::memcmp(host.raw(), expected.raw(), expected.bytes()), 0);
  }
  const std::byte tail = result.tail == Tail::marked ? kMark : std::byte{0};
  const auto* bytes = static_cast<const std::byte*>(host.raw());
  for (std::size_t i = expected.bytes(); i < host.bytes(); ++i)
    ASSERT_EQ(bytes[i], tail) << "byte " << i - expected.bytes() << " behind the rows in use";
}

void expect_same_in_every_room(StreamView stream, std::int64_t used, std::int64_t channels,
                               DType type) {
  const Operands exact(used, used, channels, type, stream, false);
  for (const Case& one : kCases) {
    if (!takes(one, used)) continue;
    const ResultList alone = one.run(exact);
    for (const std::int64_t capacity : {used, used + 1, 2 * used + 40}) {
      SCOPED_TRACE(std::string(one.name) + " of " + std::to_string(used) + " × " +
                   std::to_string(channels) + ' ' + std::string(name_of(type)) + " in room for " +
                   std::to_string(capacity));
      const Operands in(used, capacity, channels, type, stream, true);
      const ResultList made = one.run(in);
      ASSERT_EQ(made.size(), alone.size());
      for (std::size_t i = 0; i < made.size(); ++i)
        expect_same(made[i], alone[i], capacity);
    }
  }
}

TEST(RowCounts, give_the_bits_of_the_rows_alone) {
  for (const std::int64_t used : kSizes) {
    for (const DType type : kFloating)
      expect_same_in_every_room({}, used, used > 1000 ? 5 : 20, type);
  }
}

TEST(RowCountsGpu, give_the_bits_of_the_rows_alone) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t used : kSizes) {
    for (const std::int64_t channels : {5, 20}) {
      for (const DType type : kDeviceTypes) {
        if (on_emulator() && used > 1000 && (type != DType::f16 || channels != 5)) continue;
        expect_same_in_every_room(stream, used, channels, type);
      }
    }
  }
}

TEST(RowCounts, one_row_of_many_has_no_variance) {
  const Operands in(1, 9, 4, DType::f32, {}, true);
  expect_sentence([&] { trained_norm(in); }, {"batch_norm_training", "1 row", "2 rows"});
}

TEST(RowCountsGpu, one_row_of_many_has_no_variance) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t channels : {4, 5, 70}) {
    const Operands in(1, 9, channels, DType::f32, stream, true);
    const ResultList made = trained_norm(in);
    expect_sentence([&] { wait(stream); }, {"batch_norm_training", "1 row", "2 rows"});
    for (const Result& one : made) {
      SCOPED_TRACE(one.name);
      const Tensor host = back(one.values);
      if (one.name == "running mean") {
        EXPECT_TRUE(same_bits(host, back(in.shift)));
      } else if (one.name == "running variance") {
        EXPECT_TRUE(same_bits(host, back(in.scale)));
      } else if (one.name == "batches") {
        EXPECT_EQ(*host.data<std::int64_t>(), 0);
      } else if (one.name == "output") {
        for (std::int64_t c = 0; c < channels; ++c)
          EXPECT_TRUE(std::isnan(host.data<float>()[c]));
      }
    }
    wait(stream);   // it is said once
  }
}

TEST(RowCounts, more_rows_than_there_is_room_for_are_refused) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    Operands in(31, 40, 4, DType::f32, {}, true);
    *in.word->data<std::int64_t>() = 41;
    expect_sentence([&] { one.run(in); }, {"41 rows needed", "capacity 40"});
  }
}

/// All that is made of them is NaN, and what is kept from step to step stays.
TEST(RowCountsGpu, more_rows_than_there_is_room_for_are_poison) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const Case& one : kCases) {
    Operands in(31, 40, 4, DType::f32, stream, true);
    constexpr std::int64_t kTooMany = 41;
    copy_async(in.word->raw(), kGpu, &kTooMany, Device{}, sizeof(kTooMany), stream);
    for (const Result& result : one.run(in)) {
      SCOPED_TRACE(std::string(one.name) + ": " + result.name);
      const Tensor host = back(result.values);
      if (result.name == "running mean") {
        EXPECT_TRUE(same_bits(host, back(in.shift)));
      } else if (result.name == "running variance") {
        EXPECT_TRUE(same_bits(host, back(in.scale)));
      } else if (result.name == "batches") {
        EXPECT_EQ(*host.data<std::int64_t>(), 0);
      } else if (std::string_view(one.name) == "cleared") {
        EXPECT_TRUE(same_bits(host, back(in.x)));
      } else if (std::string_view(one.name) != "norm of rows" || host.shape().rank() == 2) {
        for (const float value : host.span<float>())
          ASSERT_TRUE(std::isnan(value));
      }
    }
  }
}

TEST(RowCounts, of_other_rows_are_refused) {
  const RowCount other = RowCount::exact(7);
  const Operands in(9, 9, 4, DType::f32, {}, false);
  const auto expect_refused = [](const auto& body, const char* op) {
    expect_sentence(body, {op, "within 7", "have 9 rows"});
  };
  expect_refused([&] { linear(in.x, in.weight, {}, {.rows = &other}); }, "linear");
  expect_refused([&] { linear_bias_gradient(in.x, &other); }, "linear_bias_gradient");
  expect_refused([&] { bias_gradient(in.x, &other); }, "bias_gradient");
  expect_refused([&] { layer_norm(in.x, {}, {}, 1e-5, &other); }, "layer_norm");
  expect_refused([&] { batch_norm_training(in.x, {}, {}, {}, {}, {.rows = &other}); },
                 "batch_norm_training");
  expect_refused([&] { cross_entropy(in.x, in.label, {.rows = &other}); }, "cross_entropy");
  expect_refused([&] { cleared_tail(in.x, other); }, "cleared_tail");
}

}   // namespace
}   // namespace pumice::test
