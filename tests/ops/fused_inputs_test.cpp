// Convolutions that read more than one tensor: a second one beside the features, and the shortcut
// of a residual block, on the CPU and on a device, against float64 sums.
//
// Covers convolution_steps, and the inputs of convolution.
#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/ops/convolution.hpp>

#include "ops/device_map_pairs.hpp"
#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

struct InputChannels {
  std::int64_t first, second, out;                  // second 0: there is none
  std::int64_t shortcut = 0, shortcut_second = 0;   // shortcut 0: there is none
  std::int64_t groups = 1;
};

/// Rows of whole 16 bytes in every type, as the plan wants them for one kernel, from a few channels
/// to several stages, padded ones too.
constexpr InputChannels kWhole[] = {
    {16, 8, 24},         {24, 0, 24, 16},      {24, 0, 24, 16, 8},
    {40, 0, 33, 72, 24}, {64, 32, 96, 32, 64}, {8, 8, 16, 8, 8},
};
/// Others, and groups.
constexpr InputChannels kOdd[] = {
    {3, 5, 8}, {5, 0, 7, 4, 3}, {16, 0, 16, 3}, {20, 12, 16, 1, 31}, {6, 2, 12, 4, 4, 2},
};

std::string name_of(const InputChannels& c) {
  return std::to_string(c.first) + " + " + std::to_string(c.second) + " to " +
         std::to_string(c.out) + ", shortcut " + std::to_string(c.shortcut) + " + " +
         std::to_string(c.shortcut_second) + ", " + std::to_string(c.groups) + " groups";
}

/// Every tensor of one call, on the host; undefined where there is none.
struct Inputs {
  Inputs(const KernelMapView& map, const InputChannels& c, DType type) : channels(c) {
    const DType compute = compute_of(type);
    const auto rows = [&](std::int64_t count, std::int64_t width, std::uint64_t seed) {
      return width == 0 ? Tensor() : chance_tensor({count, width}, type, seed);
    };
    first = rows(map.in_rows, c.first, 1);
    second = rows(map.in_rows, c.second, 2);
    weight = chance_tensor({map.offsets, (c.first + c.second) / c.groups, c.out}, type, 3);
    residual = chance_tensor({map.out_rows, c.out}, type, 4);
    scale = chance_tensor({c.out}, compute, 5, -2, 2);
    shift = chance_tensor({c.out}, compute, 6);
    shortcut = rows(map.out_rows, c.shortcut, 7);
    shortcut_second = rows(map.out_rows, c.shortcut_second, 8);
    if (c.shortcut == 0) return;
    shortcut_weight = chance_tensor({1, c.shortcut + c.shortcut_second, c.out}, type, 9);
    shortcut_scale = chance_tensor({c.out}, compute, 10, -2, 2);
  }

  ConvolutionOptions options() const {
    const auto view = [](const Tensor& tensor) {
      return tensor.defined() ? tensor.view() : ConstTensorView{};
    };
    return {.groups = channels.groups,
            .epilogue = {.scale = view(scale),
                         .shift = view(shift),
                         .residual = view(residual),
                         .activation = Activation::leaky_relu,
                         .slope = 0.25},
            .second = view(second),
            .shortcut = {.features = view(shortcut),
                         .second = view(shortcut_second),
                         .weight = view(shortcut_weight),
                         .scale = view(shortcut_scale)}};
  }
  ConvolutionOptions options_with(ConvolutionOptions more) const {
    const ConvolutionOptions own = options();
    more.groups = own.groups;
    more.epilogue = own.epilogue;
    more.second = own.second;
    more.shortcut = own.shortcut;
    return more;
  }
  Tensor run(const KernelMapView& map, const ConvolutionOptions& more) const {
    return convolution(first, weight, map, options_with(more));
  }
  /// With which `run` runs.
  PlanPtr plan(const KernelMapView& map, const ConvolutionOptions& more) const {
    const ConvolutionOptions all = options_with(more);
    return plan_of(convolution_problem(first, weight, map, all), map, all);
  }
  Inputs on(StreamView stream) const {
    Inputs copy = *this;
    for (Tensor* tensor :
         {&copy.first, &copy.second, &copy.weight, &copy.residual, &copy.scale, &copy.shift,
          &copy.shortcut, &copy.shortcut_second, &copy.shortcut_weight, &copy.shortcut_scale})
      if (tensor->defined()) *tensor = copy_to(stream, *tensor);
    return copy;
  }

  InputChannels channels;
  Tensor first, second, weight, residual, scale, shift;
  Tensor shortcut, shortcut_second, shortcut_weight, shortcut_scale;
};

/// Rows side by side, element by element.
Tensor beside(const Tensor& left, const Tensor& right) {
  if (!right.defined()) return left;
  const std::vector<double> a = doubles(left), b = doubles(right);
  const std::int64_t wide = left.extent(1), narrow = right.extent(1);
  Tensor both({left.rows(), wide + narrow}, DType::f64);
  for (std::int64_t row = 0; row < left.rows(); ++row) {
    double* const to = both.data<double>() + row * (wide + narrow);
    std::copy_n(a.data() + row * wide, wide, to);
    std::copy_n(b.data() + row * narrow, narrow, to + wide);
  }
  return both;
}

void scale_columns(Expected& sums, const Tensor& scale) {
  const std::vector<double> factors = doubles(scale);
  for (std::size_t i = 0; i < sums.value.size(); ++i) {
    sums.value[i] *= factors[i % factors.size()];
    sums.magnitude[i] *= std::abs(factors[i % factors.size()]);
  }
}

/// What must come out, before the activation.
Expected expected_sums(const KernelMapView& map, const Inputs& inputs) {
  const InputChannels& c = inputs.channels;
  Expected sums = convolve(map, beside(inputs.first, inputs.second), inputs.weight,
                           {c.first + c.second, c.out, c.groups});
  scale_columns(sums, inputs.scale);
  const std::vector<double> shift = doubles(inputs.shift), residual = doubles(inputs.residual);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    sums.add(i, residual[i]);
    sums.add(i, shift[i % shift.size()]);
  }
  if (c.shortcut == 0) return sums;
  const Tensor rows = beside(inputs.shortcut, inputs.shortcut_second);
  const std::vector<double> x = doubles(rows), w = doubles(inputs.shortcut_weight);
  const std::vector<double> factor = doubles(inputs.shortcut_scale);
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    for (std::int64_t n = 0; n < c.out; ++n) {
      for (std::int64_t k = 0; k < rows.extent(1); ++k) {
        sums.add(static_cast<std::size_t>(row * c.out + n),
                 x[static_cast<std::size_t>(row * rows.extent(1) + k)] *
                     w[static_cast<std::size_t>(k * c.out + n)] *
                     factor[static_cast<std::size_t>(n)]);
      }
    }
  }
  return sums;
}

/// Sums are in fp32 (f64 for f64), whose instructions cut off on a device, hence 2 u. Weights take
/// scales along in the storage type, where they are rounded once: u · Σ|term|; or the shortcut's
/// sum is stored in between, which is no more. Then the result is stored.
void expect_sums(const Tensor& actual, const Expected& sums, bool scales_in_weights) {
  const DType type = actual.dtype();
  const std::vector<double> values = doubles(actual);
  ASSERT_EQ(values.size(), sums.value.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = sums.value[i] < 0 ? 0.25 * sums.value[i] : sums.value[i];
    const double in_between = scales_in_weights ? unit(type) * sums.magnitude[i] : 0;
    const double summing = 2 * (sums.terms[i] + 64) * unit(compute_of(type)) * sums.magnitude[i];
    const double storing = unit(type) * std::abs(value) + 0x1p-24;
    ASSERT_NEAR(values[i], value, 1.01 * (in_between + summing + storing))
        << "element " << i << ", " << pumice::name_of(type);
  }
}

constexpr std::int64_t kFewRows[] = {0, 1, 31, 33};
constexpr Dataflow kDataflows[] = {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand,
                                   Dataflow::implicit_gemm};

TEST(FusedInputs, are_brought_together_on_the_cpu_for_every_dataflow) {
  for (const std::int64_t rows : kFewRows) {
    const KernelMapPtr map = submanifold_map(chance_set(rows, 3), cube(3, 1));
    for (const std::span<const InputChannels> list :
         {std::span<const InputChannels>(kWhole), std::span<const InputChannels>(kOdd)}) {
      for (const InputChannels& channels : list) {
        for (const DType type : kFloating) {
          SCOPED_TRACE(name_of(channels) + ", " + std::to_string(rows) + " rows");
          const Inputs inputs(map->view(), channels, type);
          const Expected sums = expected_sums(map->view(), inputs);
          for (const Dataflow dataflow : kDataflows) {
            expect_sums(inputs.run(map->view(), {.dataflow = dataflow}), sums,
                        channels.shortcut > 0);
            EXPECT_FALSE(inputs.plan(map->view(), {.dataflow = dataflow})->fuses_inputs);
          }
        }
      }
    }
  }
}

TEST(FusedInputs, go_with_maps_to_other_sites) {
  const auto fine = chance_set(300, 5);
  const auto coarse = strided_set(fine, cube(2, 2), StridedOutputs::cell);
  const KernelMapPtr map = map_between(fine, coarse, cube(2, 2));
  const Inputs inputs(map->view(), {16, 8, 24, 16, 8}, DType::f64);
  expect_sums(inputs.run(map->view(), {}), expected_sums(map->view(), inputs), true);
}

TEST(FusedInputs, that_do_not_fit_are_refused_by_name) {
  const KernelMapPtr map = submanifold_map(chance_set(33, 3), cube(3, 1));
  const Inputs inputs(map->view(), {16, 8, 24, 16, 8}, DType::f32);
  const auto refused = [&](auto&& change, std::initializer_list<std::string> words) {
    ConvolutionOptions options = inputs.options();
    change(options);
    expect_sentence([&] { convolution(inputs.first, inputs.weight, map->view(), options); }, words);
  };
  const Tensor few = chance_tensor({32, 8}, DType::f32, 1);
  const Tensor half = chance_tensor({33, 8}, DType::f16, 1);
  const Tensor wide = chance_tensor({33, 9}, DType::f32, 1);
  refused([&](auto& o) { o.second = few; }, {"second has 32 rows", "33"});
  refused([&](auto& o) { o.second = half; }, {"second holds f16", "f32"});
  refused([&](auto& o) { o.second = wide; }, {"takes 24 input channels", "25"});
  refused([&](auto& o) { o.shortcut.second = few; },
          {"shortcut.second has 32 rows", "map.out_rows"});
  refused([&](auto& o) { o.shortcut.second = wide; }, {"shortcut.weight", "[1, 25, 24]"});
  refused([&](auto& o) { o.shortcut.features = {}; }, {"shortcut has a weight but no features"});
  refused([&](auto& o) { o.shortcut.weight = {}; }, {"shortcut.weight"});
  refused([&](auto& o) { o.shortcut.scale = few; }, {"shortcut.scale has shape"});
  const Tensor gradient = chance_tensor({33, 24}, DType::f32, 1);
  expect_sentence(
      [&] {
        convolution_input_gradient(gradient, inputs.weight, map->view(), {.second = inputs.second});
      },
      {"second tensor or a shortcut", "gradient"});
}

void expect_fused_on_device(const MapPair& map, const InputChannels& channels, DType type,
                            StreamView stream, bool tf32 = false) {
  SCOPED_TRACE(name_of(channels) + ", " + std::string(pumice::name_of(type)) + ", " +
               std::to_string(map.cpu->view().out_rows) + " rows");
  const Inputs inputs(map.cpu->view(), channels, type);
  const Inputs there = inputs.on(stream);
  PackedWeights weights;
  PackedWeights shortcut_weights;
  ConvolutionOptions options = there.options();
  options.kept = &weights;
  options.shortcut.kept = &shortcut_weights;
  options.numerics.tf32 = tf32;
  const PlanPtr plan = there.plan(map.gpu->view(), options);
  const auto run = [&] {
    return back(convolution(there.first, there.weight, map.gpu->view(), options));
  };
  const Tensor first = run();
  const Expected sums = expected_sums(map.cpu->view(), inputs);
  if (tf32) {   // 10 bits of each factor of a product
    const std::vector<double> values = doubles(first);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = sums.value[i] < 0 ? 0.25 * sums.value[i] : sums.value[i];
      ASSERT_NEAR(values[i], value, 4 * 0x1p-11 * sums.magnitude[i]);
    }
  } else {
    expect_sums(first, sums, channels.shortcut > 0 && type != DType::f32);
  }
  EXPECT_TRUE(plan->fuses_inputs);
  EXPECT_TRUE(same_bits(first, run()));   // with weights that are packed already
}

TEST(FusedInputsGpu, are_read_where_they_lie) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 31, 33, 3000}) {
    if (on_emulator() && rows > 33) continue;
    const MapPair map = submanifold_pair(rows, stream);
    for (const InputChannels& channels : kWhole) {
      if (on_emulator() && channels.out != 33 && channels.second != 8) continue;
      for (const DType type : kDeviceTypes) {
        if (on_emulator() && type == DType::bf16) continue;
        expect_fused_on_device(map, channels, type, stream);
      }
    }
  }
}

TEST(FusedInputsGpu, are_multiplied_in_tf32) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(on_emulator() ? 33 : 2000, stream);
  expect_fused_on_device(map, {16, 8, 24, 16, 8}, DType::f32, stream, true);
}

TEST(FusedInputsGpu, go_with_maps_to_other_sites_and_with_none) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const std::int64_t rows = on_emulator() ? 40 : 3000;
  expect_fused_on_device(strided_pair(rows, false, stream), {16, 8, 24, 16, 8}, DType::f16, stream);
  expect_fused_on_device(strided_pair(rows, true, stream), {16, 8, 24, 16, 8}, DType::f16, stream);
  const CoordinateSetPtr set = chance_set(rows, 3);
  const MapPair same{submanifold_map(set, cube(1, 1)),
                     submanifold_map(CoordinateSet::copy_to(set, stream), cube(1, 1))};
  expect_fused_on_device(same, {16, 8, 24, 16, 8}, DType::f16, stream);
}

TEST(FusedInputsGpu, that_no_kernel_takes_together_are_brought_together) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 31, 33, 2000}) {
    if (on_emulator() && rows != 33) continue;
    const MapPair map = submanifold_pair(rows, stream);
    for (const InputChannels& channels : kOdd) {
      if (on_emulator() && channels.out != 7) continue;
      for (const DType type : kDeviceTypes) {
        if (on_emulator() && type != DType::f16) continue;
        SCOPED_TRACE(name_of(channels) + ", " + std::to_string(rows) + " rows");
        const Inputs inputs(map.cpu->view(), channels, type);
        const Inputs there = inputs.on(stream);
        expect_sums(back(there.run(map.gpu->view(), {})), expected_sums(map.cpu->view(), inputs),
                    channels.shortcut > 0);
        EXPECT_FALSE(there.plan(map.gpu->view(), {})->fuses_inputs);
      }
    }
  }
}

TEST(FusedInputsGpu, are_brought_together_for_another_dataflow) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const MapPair map = submanifold_pair(on_emulator() ? 33 : 2000, stream);
  const Inputs inputs(map.cpu->view(), {16, 8, 24, 16, 8}, DType::f16);
  const Expected sums = expected_sums(map.cpu->view(), inputs);
  for (const bool deterministic : {false, true}) {
    expect_sums(back(inputs.on(stream).run(map.gpu->view(),
                                           {.dataflow = Dataflow::fetch_on_demand,
                                            .numerics = {.deterministic = deterministic}})),
                sums, true);
  }
}

}   // namespace
}   // namespace pumice
