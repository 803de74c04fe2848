// What weights say of themselves, and what their tensors say where they do not.
#include <pumice/nn/model_card.hpp>

#include <gtest/gtest.h>

#include <pumice/nn/weights.hpp>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::nn {
namespace {

using test::message_of;

using Metadata = std::map<std::string, std::string>;

ModelCard card_of(const Metadata& metadata) {
  return read_model_card(metadata, "w.safetensors");
}

std::string complaint(const Metadata& metadata) {
  return message_of([&] { card_of(metadata); });
}

TEST(ModelCard, HoldsWhatTheMetadataSays) {
  const ModelCard card = card_of({{"network", "minkunet42"},
                                  {"in_channels", "4"},
                                  {"outputs", "2"},
                                  {"widths", "8,8,16,16,32,32,16,16,8"},
                                  {"voxel_size", "0.1,0.1,0.2"},
                                  {"classes", "car,road"},
                                  {"colours", "#5fa8ff,#000001"},
                                  {"labels", "10 252,40"},
                                  {"made by", "anyone"}});
  EXPECT_EQ(card.network, "minkunet42");
  EXPECT_EQ(card.in_channels, 4);
  EXPECT_EQ(card.outputs, 2);
  EXPECT_EQ(card.widths, (MinkUNetWidths{8, 8, 16, 16, 32, 32, 16, 16, 8}));
  EXPECT_EQ(card.voxel_size, (std::array{0.1, 0.1, 0.2}));
  EXPECT_EQ(card.classes, (std::vector<std::string>{"car", "road"}));
  EXPECT_EQ(card.colours[0], (std::array<std::uint8_t, 3>{0x5f, 0xa8, 0xff}));
  EXPECT_EQ(card.labels, (std::vector<std::vector<std::int32_t>>{{10, 252}, {40}}));
  EXPECT_EQ(card_of({}).outputs, std::nullopt);
  EXPECT_EQ(card_of({{"classes", "a,b,c"}}).outputs, 3);
}

TEST(ModelCard, IsRefusedWhereItContradictsItself) {
  EXPECT_EQ(complaint({{"outputs", "19"}, {"classes", "a,b"}}),
            "w.safetensors: its metadata says classes = \"a,b\"; it takes one name for each of its "
            "19 outputs");
  for (const char* count : {"", "0", "-1", "many", "1048577", "4.0"}) {
    EXPECT_EQ(complaint({{"outputs", count}}), "w.safetensors: its metadata says outputs = \"" +
                                                   std::string(count) +
                                                   "\"; it takes a whole number from 1 to 1048576");
  }
}

Metadata relational_metadata() {
  return {{"network", "rgcn"}, {"layers", "2"},        {"in_channels", "1080876"},
          {"widths", "16,4"},  {"outputs", "4"},       {"relations", "90"},
          {"bases", "30"},     {"activation", "relu"}, {"aggr", "mean"}};
}

TEST(ModelCard, OfRelationalNetworksSaysWhatTheyAreMadeOf) {
  const ModelCard card = card_of(relational_metadata());
  ASSERT_TRUE(card.relational);
  EXPECT_EQ(card.in_channels, 1'080'876);
  EXPECT_EQ(card.outputs, 4);
  EXPECT_EQ(card.widths, std::nullopt);
  EXPECT_EQ(card.relational->widths, (std::vector<std::int64_t>{16, 4}));
  EXPECT_EQ(card.relational->relations, 90);
  EXPECT_EQ(card.relational->bases, 30);
  EXPECT_EQ(card.relational->blocks, std::nullopt);
  EXPECT_EQ(card.relational->reduction, EntryReduction::mean);
  EXPECT_FALSE(card_of({{"network", "minkunet42"}, {"relations", "90"}}).relational);

  const auto with = [](const char* key, const char* value) {
    Metadata metadata = relational_metadata();
    metadata[key] = value;
    return complaint(metadata);
  };
  EXPECT_EQ(with("layers", "3"),
            "w.safetensors: its metadata says layers = \"3\"; it takes one width for each");
  EXPECT_EQ(with("outputs", "5"),
            "w.safetensors: its metadata says outputs = \"5\"; it takes the last of its widths");
  EXPECT_EQ(with("blocks", "2"),
            "w.safetensors: its metadata says blocks = \"2\"; it takes bases or blocks");
  EXPECT_EQ(with("activation", "tanh"),
            "w.safetensors: its metadata says activation = \"tanh\"; there is relu between layers");
  EXPECT_EQ(with("aggr", "add"),
            "w.safetensors: its metadata says aggr = \"add\"; it takes mean, sum or max");
  for (const char* widths : {"", "16,", "16,0", "16;4", "many", "16,4,1048577"})
    EXPECT_NE(with("widths", widths).find("it takes 1 to 256 whole numbers"), std::string::npos);
  EXPECT_NE(with("relations", "65536").find("from 1 to 65535"), std::string::npos);
  for (const char* key : {"in_channels", "widths", "relations"}) {
    Metadata metadata = relational_metadata();
    metadata.erase(key);
    EXPECT_EQ(complaint(metadata),
              "w.safetensors: its metadata says network = \"rgcn\" and not its " +
                  std::string(key) + "; write it with pumice.save_weights");
  }
}

/// An entry of 400,000 bytes is no sentence of 400,000 bytes, and no command for a terminal.
TEST(ModelCard, QuotesEntriesInOneShortLine) {
  const std::string evil = "\x1b[31m\n" + std::string(400000, 'e');
  for (const char* key :
       {"features", "widths", "voxel_size", "in_channels", "outputs", "labels", "colours"}) {
    Metadata metadata{{"classes", "a"}};
    metadata[key] = evil;
    const std::string said = complaint(metadata);
    EXPECT_NE(said.find(key), std::string::npos) << said;
    EXPECT_LT(said.size(), 500u) << key;
    EXPECT_EQ(said.find_first_of("\x1b\n"), std::string::npos) << said;
  }
}

TEST(ModelCard, TakesTheNumberOfOutputsFromTheClassifierWhereNothingSaysIt) {
  const test::TemporaryFolder folder;
  NetworkOptions options;
  options.widths = {8, 8, 8, 8, 8, 8, 8, 8, 8};
  options.classes = 5;
  save_weights(*make_network("minkunet42", options), folder / "w.safetensors");
  const SafetensorsFile file = SafetensorsFile::open(folder / "w.safetensors");
  EXPECT_EQ(read_model_card(file).outputs, 5);
  EXPECT_EQ(widths_in(file), options.widths);
  save_weights(*make_network("second"), folder / "s.safetensors");
  const SafetensorsFile other = SafetensorsFile::open(folder / "s.safetensors");
  EXPECT_EQ(read_model_card(other).outputs, std::nullopt);
  EXPECT_EQ(widths_in(other), std::nullopt);
}

TEST(Widths, AreSaidByTheShortestOptions) {
  EXPECT_EQ(options_for(scaled_widths(kSpvnasWidths, 0.25)), "--width-factor 0.25");
  EXPECT_EQ(options_for(scaled_widths(kSpvnasWidths, 0.5)), "--width-factor 0.5");
  EXPECT_EQ(options_for(scaled_widths(kSpvnasWidths, 2)), "--width-factor 2");
  EXPECT_EQ(options_for(kSpvnasWidths), "--widths spvnas");
  EXPECT_EQ(options_for(kDrivingWidths), "--widths driving");
  EXPECT_EQ(options_for(scaled_widths(kDrivingWidths, 0.75)),
            "--widths driving --width-factor 0.75");
  EXPECT_EQ(options_for({8, 8, 8, 8, 8, 8, 8, 8, 9}), "--widths 8,8,8,8,8,8,8,8,9");
  for (const double factor : {0.01, 0.03, 0.1, 0.33, 0.77, 1.3, 3.14159}) {
    const MinkUNetWidths wanted = scaled_widths(kSpvnasWidths, factor);
    const std::string options = options_for(wanted);
    ASSERT_TRUE(options.starts_with("--width-factor ")) << options;
    EXPECT_EQ(scaled_widths(kSpvnasWidths, std::stod(options.substr(15))), wanted) << options;
  }
}

TEST(FindingWeights, SaysWhichAreInstalled) {
  EXPECT_EQ(find_weights("a/b.safetensors"), "a/b.safetensors");
  EXPECT_EQ(find_weights("roads.safetensors"), "roads.safetensors");
  EXPECT_TRUE(find_weights("streets").ends_with("pumice/models/streets.safetensors"));
  const std::string said = message_of([] { find_weights("ro\nads"); });
  EXPECT_EQ(said,
            "weights \"ro\\nads\": there is no such file, and no installed weights have that name "
            "(installed: streets); give the path of a safetensors file");
}

}   // namespace
}   // namespace pumice::nn
