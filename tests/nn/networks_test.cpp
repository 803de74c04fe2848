// Networks: their parameters, their sites, and that they give the same answers however they run.
#include <pumice/nn/networks.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

#include <pumice/coords/set_operations.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/nn/initialize.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

constexpr MinkUNetWidths kTiny{3, 3, 4, 5, 6, 6, 5, 4, 4};

std::shared_ptr<Module> small_network(std::string_view name) {
  return make_network(name, {.widths = kTiny, .seed = 1});
}

SparseTensor small_input(std::string_view name, DType type = DType::f32) {
  const auto shape = find_network(name).spatial_shape;
  const SceneOptions scene{.low = shape ? 0 : -40, .spatial_shape = shape};
  return make_input(make_scene(scene), 4, type);
}

Tensor run(Module& network, SparseTensor x) {
  Context context;
  return network.forward(std::move(x), context).features;
}

class EachNetwork : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, EachNetwork,
                         ::testing::Values("minkunet42", "centerpoint", "second"));

struct Golden {
  const char* file;
  const char* network;
  MinkUNetWidths widths;
  int convolutions;   // 42 with kernels above 1 in MinkUNet42, and one 1×1×1 where widths change
};

TEST(NetworkParameters, have_the_names_and_shapes_a_pytorch_module_would_have) {
  for (const Golden& golden :
       {Golden{"minkunet42_spvnas", "minkunet42", kSpvnasWidths, 49},
        Golden{"minkunet42_driving", "minkunet42", kDrivingWidths, 48},
        Golden{"centerpoint", "centerpoint", {}, 21}, Golden{"second", "second", {}, 12}}) {
    const auto network = make_network(golden.network, {.widths = golden.widths});
    std::string actual;
    int convolutions = 0;
    int wide = 0;
    for (const NamedParameter& named : network->parameters()) {
      const Shape& shape = named.parameter->value().shape();
      actual += named.name + " " + to_string(shape) + "\n";
      convolutions += shape.rank() == 3 ? 1 : 0;
      wide += shape.rank() == 3 && shape[0] > 1 ? 1 : 0;
    }
    std::ifstream file(std::string(PUMICE_SOURCE_DIR "/tests/nn/golden/") + golden.file + ".txt");
    const std::string expected{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(actual, expected) << golden.file;
    EXPECT_EQ(convolutions, golden.convolutions) << golden.file;
    const bool unet = std::string_view(golden.network) == "minkunet42";
    EXPECT_EQ(wide, unet ? 42 : golden.convolutions);
    EXPECT_EQ(network->layer_count(), golden.convolutions + (unet ? 1 : 0));
  }
}

TEST(NetworkTable, finds_by_name_and_lists_the_names_there_are) {
  std::vector<std::string> names;
  for (const NetworkInfo& info : networks()) {
    names.emplace_back(info.name);
    EXPECT_EQ(find_network(info.name).name, info.name);
    if (!info.range) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double cells = ((*info.range)[axis + 3] - (*info.range)[axis]) / info.voxel_size[axis];
      EXPECT_NEAR(cells + (axis == 2 ? 1 : 0), (*info.spatial_shape)[axis], 1e-9);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"minkunet42", "centerpoint", "second"}));
  EXPECT_EQ(message_of([] { find_network("unet"); }),
            "network = \"unet\": there are minkunet42, centerpoint, second");
  EXPECT_EQ(parse_widths("driving"), kDrivingWidths);
}

TEST(NetworkTable, nine_numbers_are_widths_and_a_bad_one_is_named) {
  EXPECT_EQ(parse_widths("64,64,64,128,256,256,128,64,64"), kDrivingWidths);
  const std::vector<std::pair<const char*, const char*>> refusals{
      {"wide", "\"wide\" is no number"},
      {"", "\"\" is no number"},
      {"32", ": 1 number;"},
      {"8,8,8,8,8,8,8,8", "8 numbers"},
      {"8,8,8,8,8,8,8,8,8,8", "10 numbers"},
      {"8,8,8,8,8,8,8,8,", "\"\" is no number"},
      {"8,8,8,8,-2,8,8,8,8", "\"-2\" is no number"},
      {"8,8,8,8,0,8,8,8,8", "\"0\" is no number"},
      {"8,8,8,8,8,8,8,8,1048577", "\"1048577\" is no number from 1 to 1048576"},
      {"8, 8,8,8,8,8,8,8,8", "\" 8\" is no number"},
      {"8,8,8,8,99999999999999999999,8,8,8,8", "\"99999999999999999999\" is no number"}};
  for (const auto& [text, part] : refusals) {
    const std::string message = message_of([widths = text] { parse_widths(widths); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("give spvnas, driving, or nine numbers"), std::string::npos) << message;
  }
}

TEST(NetworkTable, a_width_factor_scales_all_nine_widths) {
  const auto network = make_network("minkunet42", {.width_factor = 0.5});
  EXPECT_EQ(parameter_of(*network, "stage4.2.net.3.weight")->value().shape(),
            Shape({27, 128, 128}));
  EXPECT_EQ(parameter_of(*network, "up4.1.0.net.0.weight")->value().shape(), Shape({27, 64, 48}));
  EXPECT_NE(
      message_of([] { make_network("minkunet42", {.width_factor = 0}); }).find("width factor = 0"),
      std::string::npos);
}

TEST(NetworkTable, a_width_factor_beyond_reason_is_refused) {
  EXPECT_EQ(message_of([] { make_network("minkunet42", {.width_factor = 1e30}); }),
            "width factor = 1e+30: a layer of 3.2e+31 channels is too wide; the most is 1048576");
}

TEST(MinkUNet, knows_how_many_weights_it_would_hold) {
  for (const MinkUNetWidths& widths : {kSpvnasWidths, kTiny}) {
    for (const double factor : {0.25, 1.0}) {
      const MinkUNet42Options options{.widths = widths, .width_factor = factor, .classes = 7};
      const MinkUNet42 network(options);
      std::int64_t held = 0;
      for (const NamedParameter& named : network.parameters()) {
        if (named.parameter->value().shape().rank() > 1)
          held += named.parameter->value().elements();
      }
      EXPECT_EQ(minkunet42_weights(options), held) << factor;
    }
  }
}

TEST_P(EachNetwork, norms_follow_the_statistics_as_fast_as_published) {
  // The same batch twice: from 0 the running means go to m · mean and then to m (2 - m) · mean.
  const auto network = small_network(GetParam());
  network->to(DType::f64);
  const SparseTensor x = small_input(GetParam(), DType::f64);
  const auto means = [&] {
    run(*network, x);
    std::vector<double> values;
    for (const NamedParameter& named : network->parameters()) {
      if (!named.name.ends_with("running_mean")) continue;
      const auto span = std::as_const(*named.parameter).value().span<double>();
      values.insert(values.end(), span.begin(), span.end());
    }
    return values;
  };
  const std::vector<double> once = means();
  const std::vector<double> twice = means();
  ASSERT_GT(once.size(), 100u);
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_NEAR(twice[i], (2 - momentum_of(GetParam())) * once[i], 1e-12 * std::abs(once[i])) << i;
  }
}

TEST(Encoders, their_first_norm_has_the_published_epsilon_too) {
  // Norms that do nothing at a variance of 1 - epsilon; then the first one sees a variance of 0
  // and multiplies by 1 / sqrt(epsilon), which every layer behind it passes on.
  for (const char* name : {"centerpoint", "second"}) {
    const auto network = small_network(name);
    network->to(DType::f64);
    network->eval();
    const auto set_variance = [&](std::string_view prefix, double variance) {
      for (const NamedParameter& named : network->parameters()) {
        if (!named.name.starts_with(prefix) || !named.name.ends_with("running_var")) continue;
        for (double& value : named.parameter->edit().span<double>())
          value = variance;
      }
    };
    set_variance("", 1 - 1e-3);
    const SparseTensor x = small_input(name, DType::f64);
    Tensor expected = run(*network, x);
    ASSERT_GT(largest(expected), 0) << name;
    for (double& value : expected.span<double>())
      value *= std::sqrt(1e3);
    set_variance("conv_input", 0);
    EXPECT_LT(relative_difference(run(*network, x), expected), 1e-12) << name;
  }
}

TEST(MinkUNet, scores_every_voxel_and_builds_each_map_once) {
  const auto network = small_network("minkunet42");
  const SparseTensor x = small_input("minkunet42");
  Context context;
  const SparseTensor y = network->forward(x, context);
  EXPECT_EQ(y.coordinates, x.coordinates);
  EXPECT_EQ(y.features.shape(), Shape({x.rows(), 19}));
  // 3³ on five levels, 1³ on the five where widths change, 2³/2 between them; the four inverse
  // convolutions add none.
  EXPECT_EQ(x.maps->built(), 5 + 5 + 4);
}

TEST(MinkUNet, levels_halve_as_floor_division_does) {
  const auto network = small_network("minkunet42");
  const SparseTensor x = small_input("minkunet42");
  Profile profile;
  Context context{.profile = &profile};
  network->forward(x, context);
  std::map<std::string, std::int64_t> rows;
  for (const LayerRecord& layer : profile.layers)
    rows[layer.name] = layer.out_rows;
  std::set<std::array<std::int32_t, 4>> level;
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const std::int32_t* site = x.coordinates->coordinates().data<std::int32_t>() + 4 * row;
    level.insert({site[0], site[1], site[2], site[3]});
  }
  for (const char* stage : {"stage1", "stage2", "stage3", "stage4"}) {
    std::set<std::array<std::int32_t, 4>> coarser;
    for (auto site : level) {
      for (std::size_t axis = 1; axis < 4; ++axis) {
        site[axis] = static_cast<std::int32_t>(std::floor(site[axis] / 2.0));
      }
      coarser.insert(site);
    }
    level = std::move(coarser);
    EXPECT_EQ(rows[std::string(stage) + ".0.net.0"], static_cast<std::int64_t>(level.size()));
  }
}

TEST(Encoders, leave_the_grid_of_their_range_at_an_eighth) {
  struct Expected {
    const char* name;
    Axes shape;
  };
  // z: 41 → 21 → 11 → 5 (no padding) → 2
  for (const auto& [name, shape] :
       {Expected{"centerpoint", {180, 180, 2}}, Expected{"second", {176, 200, 2}}}) {
    const auto network = small_network(name);
    Context context;
    const SparseTensor y = network->forward(small_input(name), context);
    EXPECT_EQ(y.channels(), 128);
    ASSERT_TRUE(y.coordinates->spatial_shape().has_value());
    for (std::size_t axis = 0; axis < 3; ++axis) {
      EXPECT_EQ((*y.coordinates->spatial_shape())[axis], shape[axis]) << name << axis;
    }
  }
}

TEST_P(EachNetwork, takes_an_empty_input) {
  const auto network = small_network(GetParam());
  const SparseTensor x = make_input(empty_scene(find_network(GetParam()).spatial_shape), 4);
  const std::int64_t channels = std::string_view(GetParam()) == "minkunet42" ? 19 : 128;
  EXPECT_EQ(run(*network, x).shape(), Shape({0, channels}));
  network->eval();
  EXPECT_EQ(run(*network, x).shape(), Shape({0, channels}));
  fold(*network);
  EXPECT_EQ(run(*network, x).shape(), Shape({0, channels}));
}

TEST_P(EachNetwork, gives_the_same_bits_on_one_two_and_three_threads) {
  const int before = threads();
  const auto shape = find_network(GetParam()).spatial_shape;
  const CoordinateSetPtr set =
      make_scene({.sites = 3000, .low = shape ? 0 : -40, .spatial_shape = shape});
  const auto network = small_network(GetParam());
  std::vector<Tensor> training;
  std::vector<Tensor> folded;
  std::vector<Tensor> gradients;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    network->train();
    network->clear_gradients();
    initialize(*network, 1);
    Context context{.record = true};
    const SparseTensor y = network->forward(make_input(set, 4), context);
    training.push_back(y.features);
    backward(y.node, random_tensor(y.features.shape(), DType::f32, 4));
    gradients.push_back(network->parameters().front().parameter->gradient());
    network->eval();
    fold(*network);
    folded.push_back(run(*network, make_input(set, 4)));
  }
  set_threads(before);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(same_bits(training[i], training[0]));
    EXPECT_TRUE(same_bits(gradients[i], gradients[0]));
    EXPECT_TRUE(same_bits(folded[i], folded[0]));
  }
}

TEST_P(EachNetwork, a_batch_item_does_not_see_its_neighbours) {
  const auto network = small_network(GetParam());
  network->to(DType::f64);
  const SparseTensor both = small_input(GetParam(), DType::f64);
  settle(*network, both, momentum_of(GetParam()));
  const std::int32_t* sites = both.coordinates->coordinates().data<std::int32_t>();
  Tensor keep = Tensor::zeros({both.rows()}, DType::u8);
  for (std::int64_t row = 0; row < both.rows(); ++row) {
    keep.data<std::uint8_t>()[row] = sites[4 * row] == 1 ? 1 : 0;
  }
  const PrunedSet second = prune_set(*both.coordinates, keep);
  Tensor features({second.set->size(), 4}, DType::f64);
  for (std::int64_t row = 0; row < features.rows(); ++row) {
    const std::int32_t from = second.kept.data<std::int32_t>()[row];
    std::copy_n(both.features.data<double>() + 4 * from, 4, features.data<double>() + 4 * row);
  }
  Context context;
  const SparseTensor together = network->forward(both, context);
  const SparseTensor alone = network->forward({second.set, features}, context);
  ASSERT_GT(alone.rows(), 0);
  ASSERT_LT(alone.rows(), together.rows());
  const std::int32_t* coordinates = alone.coordinates->coordinates().data<std::int32_t>();
  double worst = 0;
  for (std::int64_t row = 0; row < alone.rows(); ++row) {
    const std::int32_t there = together.coordinates->find({coordinates + 4 * row, 4});
    ASSERT_GE(there, 0);
    for (std::int64_t c = 0; c < alone.channels(); ++c) {
      worst =
          std::max(worst, std::abs(alone.features.data<double>()[row * alone.channels() + c] -
                                   together.features.data<double>()[there * alone.channels() + c]));
    }
  }
  EXPECT_LT(worst, 1e-13 * std::max(1.0, largest(alone.features)));
}

TEST_P(EachNetwork, half_types_stay_near_float) {
  const auto network = small_network(GetParam());
  settle(*network, small_input(GetParam()), momentum_of(GetParam()));
  fold(*network);
  const Tensor expected = run(*network, small_input(GetParam()));
  // 11 and 8 bits of mantissa, rounded once a layer: errors of some 2^-11 and 2^-8 add up over
  // the depth like a random walk.
  for (const auto& [type, tolerance] : {std::pair{DType::f16, 0.02}, {DType::bf16, 0.16}}) {
    network->to(type);
    const Tensor y = run(*network, small_input(GetParam(), type));
    EXPECT_EQ(y.dtype(), type);
    EXPECT_LT(relative_difference(y, expected), tolerance) << pumice::name_of(type);
    EXPECT_GT(relative_difference(y, expected), 0);
  }
}

TEST(MapsOfANetwork, are_never_shared_by_different_sites_of_equal_number) {
  const SparseTensor x = make_input(make_scene(), 4);
  const auto half = [&](std::int64_t parity) {
    Tensor keep = Tensor::zeros({x.rows()}, DType::u8);
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      keep.data<std::uint8_t>()[row] = row % 2 == parity ? 1 : 0;
    }
    return prune_set(*x.coordinates, keep).set;
  };
  Convolution layer(submanifold(4, 4));
  initialize(layer, 1);
  Context context;
  // The sets are released between the passes, so that one may well come to lie where one was.
  for (int round = 0; round < 8; ++round) {
    const CoordinateSetPtr set = half(round % 2);
    ASSERT_EQ(set->size(), x.rows() / 2);
    const Tensor features = random_tensor({set->size(), 4}, DType::f32, 7);
    const Tensor shared = layer.forward({set, features, x.maps}, context).features;
    const Tensor fresh = layer.forward({set, features}, context).features;
    EXPECT_TRUE(same_bits(shared, fresh));
  }
}

TEST(SparseTensors, need_one_row_of_features_a_site) {
  const CoordinateSetPtr set = make_scene();
  EXPECT_EQ(message_of([&] {
              SparseTensor(set, Tensor({3, 4}, DType::f32));
            }),
            "sparse tensor: 3 rows of features for 60 coordinates; give one row each");
}

}   // namespace
}   // namespace pumice::nn
