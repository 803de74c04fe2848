// Weights to a file and back, and files that do not fit.
#include <pumice/nn/weights.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <pumice/core/safetensors.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/networks.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

class WeightFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("pumice_weights_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file(const char* name) const { return folder_ / name; }

  std::filesystem::path folder_;
};

std::shared_ptr<Module> network_of(std::uint64_t seed) {
  return make_network("minkunet42", {.width_factor = 0.125, .seed = seed});
}

TEST_F(WeightFiles, give_back_every_bit_under_the_names_of_the_parameters) {
  const auto saved = network_of(1);
  stir(*saved);
  save_weights(*saved, file("a.safetensors"), {{"network", "minkunet42"}});
  const SafetensorsFile written = SafetensorsFile::open(file("a.safetensors"));
  EXPECT_EQ(written.metadata().at("network"), "minkunet42");
  EXPECT_EQ(written.names().size(), saved->parameters().size());
  for (const NamedParameter& named : saved->parameters()) {
    EXPECT_TRUE(written.contains(named.name)) << named.name;
  }
  const auto loaded = network_of(2);
  ASSERT_NE(fingerprint(*loaded), fingerprint(*saved));
  load_weights(*loaded, file("a.safetensors"));
  EXPECT_EQ(fingerprint(*loaded), fingerprint(*saved));
}

TEST_F(WeightFiles, change_a_network_that_is_folded_already) {
  const auto saved = network_of(1);
  save_weights(*saved, file("a.safetensors"));
  const auto loaded = network_of(2);
  const SparseTensor x = make_input(make_scene(), 4);
  Context context;
  for (const auto& network : {saved, loaded}) {
    network->eval();
    fold(*network);
  }
  const Tensor expected = saved->forward(x, context).features;
  ASSERT_FALSE(same_bits(loaded->forward(x, context).features, expected));
  load_weights(*loaded, file("a.safetensors"));
  EXPECT_TRUE(same_bits(loaded->forward(x, context).features, expected));
}

TEST_F(WeightFiles, change_their_type_only_when_asked) {
  const auto saved = network_of(1);
  save_weights(*saved, file("f32.safetensors"));
  const auto half = network_of(2);
  half->to(DType::f16);
  const std::uint64_t before = fingerprint(*half);
  const std::string message = message_of([&] { load_weights(*half, file("f32.safetensors")); });
  EXPECT_NE(
      message.find("mismatched: stem.0.weight is f32, not f16; LoadOptions::convert takes it"),
      std::string::npos)
      << message;
  EXPECT_EQ(fingerprint(*half), before);
  load_weights(*half, file("f32.safetensors"), {.convert = true});
  saved->to(DType::f16);
  EXPECT_EQ(fingerprint(*half), fingerprint(*saved));
}

TEST_F(WeightFiles, that_do_not_fit_are_described_in_one_sentence_and_change_nothing) {
  const auto network = make_network("second", {.seed = 1});
  std::vector<Tensor> kept;
  std::vector<NamedTensor> entries;
  const Tensor odd({27, 16, 15}, DType::f32);
  const Tensor counter = Tensor::zeros({1}, DType::i64);
  for (const NamedParameter& named : network->parameters()) {
    if (named.name == "conv1.0.1.bias") continue;
    kept.push_back(named.parameter->value());
    entries.emplace_back(named.name, named.name == "conv1.0.0.weight"
                                         ? odd.view()
                                         : std::as_const(kept.back()).view());
  }
  entries.emplace_back("head.weight", odd.view());
  entries.emplace_back("conv_input.1.num_batches_tracked", counter.view());
  write_safetensors(file("odd.safetensors"), entries);
  const auto other = make_network("second", {.seed = 2});
  const std::uint64_t before = fingerprint(*other);
  EXPECT_EQ(message_of([&] { load_weights(*other, file("odd.safetensors")); }),
            "weights " + file("odd.safetensors").string() +
                " do not fit the network; missing: conv1.0.1.bias; mismatched: conv1.0.0.weight is "
                "[27, 16, 15], not [27, 16, 16]; unexpected: head.weight");
  EXPECT_EQ(fingerprint(*other), before);
}

TEST_F(WeightFiles, of_another_network_are_listed_up_to_a_few_names) {
  save_weights(*network_of(1), file("unet.safetensors"));
  const auto second = make_network("second");
  const std::string message = message_of([&] { load_weights(*second, file("unet.safetensors")); });
  EXPECT_NE(message.find("conv_input.1.running_var and 55 more; unexpected: "), std::string::npos)
      << message;
  EXPECT_LT(message.size(), 800U);
}

TEST_F(WeightFiles, cut_short_change_nothing) {
  const auto network = network_of(1);
  save_weights(*network, file("a.safetensors"));
  std::filesystem::resize_file(file("a.safetensors"),
                               std::filesystem::file_size(file("a.safetensors")) - 1);
  const std::uint64_t before = fingerprint(*network);
  EXPECT_THROW(load_weights(*network, file("a.safetensors")), UserError);
  EXPECT_THROW(load_weights(*network, file("nowhere.safetensors")), UserError);
  EXPECT_EQ(fingerprint(*network), before);
}

}   // namespace
}   // namespace pumice::nn
