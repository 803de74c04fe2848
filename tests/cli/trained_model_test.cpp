// The trained weights that come along: nothing but their file is needed to run them, and they find
// the classes of streets they have not seen. What files say of themselves is used or refused.
// Covers run, model_card and agreement.
#include <cmath>

#include <pumice/core/safetensors.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/weights.hpp>

#include "program.hpp"

namespace pumice::test {
namespace {

class TrainedModelTest : public ProgramTest {
 protected:
  TrainedModelTest() { write_points(scan_, slope(20, 30)); }

  /// A thin MinkUNet42 on disk with this metadata.
  std::string weights(const std::map<std::string, std::string>& metadata,
                      std::int64_t classes = 19) const {
    nn::NetworkOptions options;
    options.widths = {8, 8, 8, 8, 8, 8, 8, 8, 8};
    options.classes = classes;
    nn::save_weights(*nn::make_network("minkunet42", options), path("w.safetensors"), metadata);
    return path("w.safetensors");
  }

  void expect_refused(const std::map<std::string, std::string>& metadata,
                      std::vector<std::string> more, const std::vector<std::string>& named) const {
    std::vector<std::string> arguments{
        "run",   "minkunet42",           scan_, "--weights", weights(metadata),
        "--out", path("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refusal(arguments, named);
    EXPECT_FALSE(std::filesystem::exists(path("out.safetensors")));
  }

  const std::string trained_ = PUMICE_SOURCE_DIR "/models/streets.safetensors";
  const std::string thin_ = "8,8,8,8,8,8,8,8,8";
  std::string scan_ = path("slope.ply");
};

TEST_F(TrainedModelTest, IsFoundByItsName) {
  const auto features = [&](const std::string& weights) {
    const nlohmann::json result = run_json(
        {"run", "minkunet42", scan_, "--weights", weights, "--out", path("out.safetensors")});
    EXPECT_EQ(result.at("trained"), true);
    EXPECT_EQ(result.at("channels_out"), 19);
    return read_text(path("out.safetensors"));
  };
  EXPECT_EQ(features("streets"), features(trained_));
  expect_refusal({"run", "minkunet42", scan_, "--weights", "roads"}, {"roads", "no such file"});
  // As a shell starts it: by its name, from a folder of the user's. A folder of the name of weights
  // there is none of them; a file is.
  const auto from_path = [&] {
    const std::string programs = std::filesystem::path(program_path()).parent_path().string();
    return run_program(folder_,
                       {"-C", folder_.string(), "PATH=" + programs, "pumice", "run", "minkunet42",
                        "slope.ply", "--weights", "streets", "--json"},
                       "/usr/bin/env");
  };
  EXPECT_EQ(from_path().code, 0) << from_path().err;
  std::filesystem::create_directory(path("streets"));
  EXPECT_EQ(from_path().code, 0) << from_path().err;
  std::filesystem::remove(path("streets"));
  write_text(path("streets"), "these are no weights");
  const Outcome own = from_path();
  EXPECT_EQ(own.code, 1);
  EXPECT_NE(own.err.find("streets: "), std::string::npos) << own.err;
}

TEST_F(TrainedModelTest, FindsTheClassesOfStreetsItHasNotSeen) {
  // The training took seeds below 2000 and was stopped by 1000000 to 1000015.
  for (const char* seed : {"2000001", "2000006"}) {
    run_well({"simulate", "--seed", seed, "--out", path("street.ply")});
    const nlohmann::json result =
        run_json({"run", "minkunet42", path("street.ply"), "--weights", trained_});
    EXPECT_EQ(result.at("trained"), true);
    EXPECT_EQ(result.at("channels_out"), 19);
    const nlohmann::json& agreement = result.at("agreement");
    EXPECT_GT(agreement.at("points"), 100'000);
    EXPECT_GT(agreement.at("accuracy"), 0.98);
    EXPECT_GT(agreement.at("mean_iou"), 0.95);
    std::int64_t labelled = 0, right = 0;
    double sum = 0;
    int present = 0;
    for (const nlohmann::json& one : agreement.at("classes")) {
      const auto of = [&](const char* key) { return one.at(key).get<std::int64_t>(); };
      labelled += of("labelled");
      right += of("right");
      if (of("labelled") == 0) continue;
      const double iou = static_cast<double>(of("right")) /
                         static_cast<double>(of("labelled") + of("found") - of("right"));
      EXPECT_NEAR(one.at("iou").get<double>(), iou, 1e-12);
      sum += iou;
      ++present;
    }
    EXPECT_GE(present, 12);
    EXPECT_EQ(agreement.at("points"), labelled);
    EXPECT_NEAR(agreement.at("accuracy").get<double>(),
                static_cast<double>(right) / static_cast<double>(labelled), 1e-12);
    EXPECT_NEAR(agreement.at("mean_iou").get<double>(), sum / present, 1e-12);
  }
}

TEST_F(TrainedModelTest, SaysItInWordsToo) {
  run_well({"simulate", "--seed", "2000002", "--beams", "32", "--out", path("street.ply")});
  const Outcome outcome =
      run_well({"run", "minkunet42", path("street.ply"), "--weights", trained_, "--picture",
                path("out.png"), "--html", path("out.html"), "--size", "640", "480"});
  for (const char* said : {"agreement with the labels", "road", "building", "IoU", "out.html"})
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said;
  EXPECT_EQ(outcome.out.find("untrained"), std::string::npos);
  EXPECT_GT(std::filesystem::file_size(path("out.png")), 10'000u);
  const std::string page = read_text(path("out.html"));
  for (const char* said : {"\"colour\":\"label\"", "\"name\":\"road\"", "\"colour\":\"#5fa8ff\""})
    EXPECT_NE(page.find(said), std::string::npos) << said;
}

TEST_F(TrainedModelTest, TakesVoxelSizeWidthsAndClassesFromTheFile) {
  const std::string file = weights({{"network", "minkunet42"},
                                    {"features", "x,y,z,intensity"},
                                    {"widths", thin_},
                                    {"voxel_size", "0.2,0.2,0.4"},
                                    {"classes", "ground,rest"}},
                                   2);
  run_well({"run", "minkunet42", scan_, "--weights", file, "--out", path("out.safetensors"),
            "--html", path("out.html")});
  const SafetensorsFile result = SafetensorsFile::open(path("out.safetensors"));
  EXPECT_EQ(result.shape("features")[1], 2);
  const std::string page = read_text(path("out.html"));
  EXPECT_TRUE(page.find("\"name\":\"ground\"") != std::string::npos ||
              page.find("\"name\":\"rest\"") != std::string::npos);
  const auto voxels = [&](const std::vector<std::string>& size) {
    std::vector<std::string> arguments{"voxelize", scan_, "--out", path("v.safetensors"),
                                       "--voxel"};
    arguments.insert(arguments.end(), size.begin(), size.end());
    return run_json(arguments).at("voxels").get<std::int64_t>();
  };
  EXPECT_EQ(result.shape("coords")[0], voxels({"0.2", "0.2", "0.4"}));
  // What the command line says goes before what the file says.
  const nlohmann::json coarse =
      run_json({"run", "minkunet42", scan_, "--weights", file, "--voxel", "0.5"});
  EXPECT_EQ(coarse.at("voxels"), voxels({"0.5"}));
  EXPECT_EQ(coarse.at("agreement"), nullptr);
  // Widths that say the same are no contradiction.
  run_well({"run", "minkunet42", scan_, "--weights", file, "--widths", thin_});
}

TEST_F(TrainedModelTest, ColoursAreTheFilesOwn) {
  const std::string file =
      weights({{"widths", thin_}, {"classes", "a,b"}, {"colours", "#010203,#0a0b0c"}}, 2);
  run_well({"run", "minkunet42", scan_, "--weights", file, "--html", path("out.html")});
  const std::string page = read_text(path("out.html"));
  EXPECT_TRUE(page.find("\"colour\":\"#010203\"") != std::string::npos ||
              page.find("\"colour\":\"#0a0b0c\"") != std::string::npos);
}

TEST_F(TrainedModelTest, ComparesWithALabelFile) {
  const std::string file =
      weights({{"widths", thin_}, {"classes", "a,b"}, {"labels", "7 9,40"}}, 2);
  std::string labels;
  for (std::uint32_t i = 0; i < 600; ++i) {
    // A third each: class a by either number, class b, one that no class stands for. The upper
    // half of the number is an instance, and says nothing.
    const std::uint32_t label = (i << 16) | std::array<std::uint32_t, 4>{7, 9, 40, 41}[i % 4];
    labels.append(reinterpret_cast<const char*>(&label), sizeof label);
  }
  write_text(path("slope.label"), labels);
  const nlohmann::json said =
      run_json({"run", "minkunet42", scan_, "--weights", file, "--labels", path("slope.label")})
          .at("agreement");
  EXPECT_EQ(said.at("points"), 450);
  EXPECT_EQ(said.at("classes")[0].at("labelled"), 300);
  EXPECT_EQ(said.at("classes")[1].at("labelled"), 150);
  const auto found = [&](std::size_t i) { return said.at("classes")[i].at("found").get<int>(); };
  EXPECT_EQ(found(0) + found(1), 450);
  write_text(path("short.label"), labels.substr(0, 400));
  expect_refusal({"run", "minkunet42", scan_, "--weights", file, "--labels", path("short.label")},
                 {"short.label", "100 labels", "600 points"});
  expect_refusal(
      {"run", "minkunet42", scan_, scan_, "--weights", file, "--labels", path("slope.label")},
      {"--labels", "1 file for 2 scans"});
  expect_refusal({"run", "minkunet42", scan_, "--labels", path("slope.label")},
                 {"--labels", "--weights"});
  expect_refused({{"widths", thin_}}, {"--labels", path("slope.label")}, {"--labels", "labels"});
}

TEST_F(TrainedModelTest, WhatContradictsTheFileIsRefused) {
  const std::map<std::string, std::string> thin{{"network", "minkunet42"}, {"widths", thin_}};
  expect_refused(thin, {"--widths", "driving"}, {"--widths driving", "w.safetensors", "leave it"});
  expect_refused(thin, {"--width-factor", "0.5"}, {"--width-factor", "leave it"});
  expect_refusal({"run", "second", scan_, "--weights", weights(thin)},
                 {"w.safetensors", "minkunet42", "second"});
  expect_refusal({"run", "minkunet42", scan_, "--weights", weights(thin), "--size", "640", "480"},
                 {"--size", "--picture"});
}

TEST_F(TrainedModelTest, MetadataThatMakesNoSenseIsRefused) {
  const std::string classes = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s";
  const auto refused = [&](const std::string& key, const std::string& value) {
    SCOPED_TRACE(key + " = " + value);
    std::map<std::string, std::string> metadata{{"widths", thin_}, {"classes", classes}};
    metadata[key] = value;
    expect_refused(metadata, {}, {"w.safetensors", key, value});
  };
  for (const char* size : {"", "big", "0", "-0.1", "nan", "inf", "0.1,0.1", "0.1 0.1 0.1", "1e999"})
    refused("voxel_size", size);
  for (const char* widths : {"", "8", "8,8,8,8,8,8,8,8,zero", "8,8,8,8,8,8,8,8,8,8"})
    refused("widths", widths);
  for (const char* names : {"", "a,,b", ","})
    refused("classes", names);
  refused("features", "x,y,z");
  for (const char* labels :
       {"1", "1,,2 x,,,,,,,,,,,,,,,,", "1,1,,,,,,,,,,,,,,,,,", "-1,,,,,,,,,,,,,,,,,,"})
    refused("labels", labels);
  for (const char* colours : {"#000000", "red"})
    refused("colours", colours);
  std::string many = "#00000g";
  for (int i = 0; i < 18; ++i)
    many += ",#000000";
  refused("colours", many);
  // As many classes as there are outputs, or the weights do not fit.
  expect_refused({{"widths", thin_}, {"classes", "a,b"}}, {}, {"w.safetensors", "classifier"});
}

}   // namespace
}   // namespace pumice::test
