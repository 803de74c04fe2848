// Residual blocks whose input comes in two tensors, and whose shortcut is a convolution: folded, on
// a device, kernels read all of them where they lie.
//
// Covers ResidualBlock of sequential.
#include <gtest/gtest.h>

#include <pumice/nn/initialize.hpp>
#include <pumice/nn/join.hpp>

#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

/// A block and what it is given, with statistics that suit it.
struct Joined {
  Joined(std::int64_t left_channels, std::int64_t right_channels, std::int64_t out_channels,
         DType as, std::int64_t sites)
      : channels{left_channels, right_channels, out_channels},
        type(as),
        set(make_scene({.sites = sites, .low = -12, .high = 12})),
        left(make_input(set, left_channels, DType::f32, 2)),
        right(make_input(set, right_channels, DType::f32, 3)) {
    const auto enough = make_scene({.sites = 200, .low = -12, .high = 12});
    block = make();
    stir(*block);
    settle(*block, make_input(enough, left_channels + right_channels), 0.1);
    block->to(type);
    left.features = left.features.to(type);
    right.features = right.features.to(type);
    right.maps = left.maps;
  }

  std::shared_ptr<ResidualBlock> make() const {
    auto made = std::make_shared<ResidualBlock>(channels[0] + channels[1], channels[2], 3,
                                                NormOptions{}, channels[1]);
    initialize(*made, 5);
    return made;
  }
  /// A copy with the same parameters.
  std::shared_ptr<ResidualBlock> copy() const {
    auto made = make();
    made->to(type);
    made->eval();
    for (const NamedParameter& named : block->parameters())
      parameter_of(*made, named.name)->set(named.parameter->value().clone());
    return made;
  }

  std::array<std::int64_t, 3> channels;
  DType type;
  CoordinateSetPtr set;
  SparseTensor left, right;
  std::shared_ptr<ResidualBlock> block;   // on the host, not folded
};

Tensor run(ResidualBlock& block, const SparseTensor& left, const SparseTensor& right,
           Context context = {}) {
  return block.forward(left, right, context).features;
}

TEST(ResidualBlockInTwo, is_that_of_the_concatenation) {
  for (const std::int64_t out : {12, 7}) {   // 12: no convolution in the shortcut
    for (const bool folded : {false, true}) {
      const Joined joined(8, 4, out, DType::f32, 100);
      if (folded) fold(*joined.block);
      Context context;
      const Tensor whole =
          joined.block->forward(concatenate(joined.left, joined.right, context), context).features;
      EXPECT_TRUE(same_bits(run(*joined.block, joined.left, joined.right), whole));
    }
  }
}

TEST(ResidualBlockInTwo, has_the_gradients_of_the_concatenation) {
  const Joined joined(8, 4, 7, DType::f32, 60);
  const auto gradients = [&](bool whole) {
    SparseTensor left = joined.left, right = joined.right;
    const NodePtr of_left = require_gradient(left), of_right = require_gradient(right);
    Context context{.record = true};
    const SparseTensor y = whole ? joined.block->forward(concatenate(left, right, context), context)
                                 : joined.block->forward(left, right, context);
    backward(y.node, random_tensor(y.features.shape(), DType::f32, 4));
    return std::pair(of_left->gradient(), of_right->gradient());
  };
  const auto apart = gradients(false), together = gradients(true);
  EXPECT_TRUE(same_bits(apart.first, together.first));
  EXPECT_TRUE(same_bits(apart.second, together.second));
}

TEST(ResidualBlockInTwo, refuses_tensors_that_cannot_be_concatenated) {
  const Joined joined(8, 4, 7, DType::f32, 60);
  for (const bool folded : {false, true}) {
    if (folded) fold(*joined.block);
    const auto other = make_input(make_scene({.sites = 60, .seed = 9}), 4);
    EXPECT_NE(message_of([&] { run(*joined.block, joined.left, other); }).find("different sites"),
              std::string::npos);
    SparseTensor half = joined.right;
    half.features = half.features.to(DType::f16);
    EXPECT_NE(message_of([&] { run(*joined.block, joined.left, half); }).find("f32 and f16"),
              std::string::npos);
  }
}

struct OnDevice {
  OnDevice(const Joined& joined, StreamView stream)
      : left(on(joined.left, joined.type, stream)), right(left), block(joined.copy()) {
    right.features = copy_to(stream, joined.right.features);
    block->to(stream);
  }
  SparseTensor left, right;
  std::shared_ptr<ResidualBlock> block;
};

/// Five roundings to the storage type on the way of a value, which the norms keep near 1, while the
/// largest are some 5; a half sum is further off where terms cancel.
double tolerance(DType type) {
  return type == DType::f32 ? 1e-5 : type == DType::f16 ? 0.01 : 0.08;
}

TEST(ResidualBlockInTwoGpu, gives_the_answers_of_the_layers_one_by_one) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t sites : {0, 1, 31, 33, 3000}) {
    if (on_emulator() && sites != 33) continue;
    for (const auto& [first, second, out] :
         {std::array<std::int64_t, 3>{16, 8, 32}, {24, 8, 40}, {5, 3, 12}, {12, 20, 24}}) {
      for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
        if (on_emulator() && (type == DType::bf16 || first > 16 || first == 12)) continue;
        SCOPED_TRACE(std::to_string(first) + " + " + std::to_string(second) + " channels, " +
                     std::to_string(sites) + " sites, " + std::string(name_of(type)));
        const Joined joined(first, second, out, type, sites);
        const Tensor expected = run(*joined.block, joined.left, joined.right);
        const OnDevice device(joined, stream);
        const Tensor plain = copy_to_host(run(*device.block, device.left, device.right), stream);
        fold(*device.block);
        const Tensor fused = copy_to_host(run(*device.block, device.left, device.right), stream);
        EXPECT_LT(relative_difference(fused, expected), tolerance(type));
        EXPECT_LT(relative_difference(fused, plain), tolerance(type));
      }
    }
  }
}

TEST(ResidualBlockInTwoGpu, runs_two_kernels_where_rows_are_whole_pieces) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto kinds = [&](std::int64_t left, std::int64_t right, DType type, Context context = {}) {
    const Joined joined(left, right, 32, type, 33);
    const OnDevice device(joined, stream);
    fold(*device.block);
    Profile profile;
    profile.expected = device.block->layer_count();
    context.profile = &profile;
    run(*device.block, device.left, device.right, context);
    EXPECT_EQ(profile.done, profile.expected);
    std::vector<std::string> result;
    for (const LayerRecord& layer : profile.layers)
      result.push_back(layer.kind);
    return result;
  };
  const std::string first = "submanifold 3x3x3 + norm + relu",
                    pointwise = "submanifold 1x1x1 + norm";
  const std::string fused = "submanifold 3x3x3 + norm + shortcut + relu";
  const std::string residual = "submanifold 3x3x3 + norm + residual + relu";
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds(16, 8, DType::f16), (Kinds{first, fused}));
  // 24 bytes and 24: the concatenation alone is of whole pieces.
  EXPECT_EQ(kinds(12, 12, DType::f16), (Kinds{"concatenate", first, fused}));
  EXPECT_EQ(kinds(5, 6, DType::f16), (Kinds{"concatenate", first, pointwise, residual}));
  EXPECT_EQ(kinds(16, 8, DType::f16, {.dataflow = Dataflow::fetch_on_demand}),
            (Kinds{"concatenate", first, pointwise, residual}));
}

TEST(ResidualBlockInTwoGpu, sees_parameters_that_change_afterwards) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Joined joined(16, 8, 32, DType::f16, 33);
  const OnDevice device(joined, stream);
  fold(*device.block);
  Tensor before = copy_to_host(run(*device.block, device.left, device.right), stream);
  for (const char* name : {"net.3.weight", "net.4.weight", "net.4.bias", "downsample.0.weight",
                           "downsample.1.weight", "downsample.1.running_mean"}) {
    const ParameterPtr here = parameter_of(*joined.block, name);
    Tensor changed = here->value().to(DType::f32);
    for (float& value : changed.span<float>())
      value = 1.5F * value + 0.25F;
    here->set(changed.to(here->value().dtype()));
    parameter_of(*device.block, name)->set(copy_to(stream, here->value()));
    const Tensor after = copy_to_host(run(*device.block, device.left, device.right), stream);
    EXPECT_FALSE(same_bits(after, before)) << name;
    EXPECT_LT(relative_difference(after, run(*joined.block, joined.left, joined.right)),
              tolerance(DType::f16))
        << name;
    before = after;
  }
}

}   // namespace
}   // namespace pumice::nn
