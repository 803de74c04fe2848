// `pumice run`: what the result file holds for each network, batches, weights and threads.
#include <cmath>
#include <cstring>
#include <set>

#include <pumice/core/safetensors.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/weights.hpp>

#include "program.hpp"

namespace pumice::test {
namespace {

class RunTest : public ProgramTest {
 protected:
  RunTest() {
    write_points(scan_, slope(40, 50));
    write_points(other_, slope(20, 30));
  }

  SafetensorsFile run_network(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--out", path("out.safetensors")});
    run_well(arguments);
    return SafetensorsFile::open(path("out.safetensors"));
  }

  std::string scan_ = path("slope.ply");
  std::string other_ = path("other.ply");
};

/// coords i32 [N, 4], features f32 [N, channels] and finite, point_to_voxel i64 [points].
void expect_contract(const SafetensorsFile& file, std::int64_t channels, std::int64_t points) {
  ASSERT_EQ(file.dtype("coords"), DType::i32);
  ASSERT_EQ(file.dtype("features"), DType::f32);
  ASSERT_EQ(file.dtype("point_to_voxel"), DType::i64);
  const std::int64_t rows = file.shape("coords")[0];
  EXPECT_GT(rows, 0);
  EXPECT_EQ(file.shape("coords"), (Shape{rows, 4}));
  EXPECT_EQ(file.shape("features"), (Shape{rows, channels}));
  EXPECT_EQ(file.shape("point_to_voxel"), (Shape{points}));
  const Tensor features = file.get("features");
  bool varied = false;
  for (const float value : features.span<float>()) {
    ASSERT_TRUE(std::isfinite(value));
    varied = varied || value != features.data<float>()[0];
  }
  EXPECT_TRUE(varied) << "every score is " << features.data<float>()[0];
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

TEST_F(RunTest, MinkUNetGivesEveryVoxelItsScores) {
  const SafetensorsFile file = run_network({"minkunet42", scan_});
  expect_contract(file, 19, 2000);
  // Its voxels are those of `pumice voxelize` at its voxel size, and a point finds its own.
  run_well({"voxelize", scan_, "--voxel", "0.05", "--out", path("voxels.safetensors")});
  const SafetensorsFile voxels = SafetensorsFile::open(path("voxels.safetensors"));
  EXPECT_TRUE(same_bytes(file.get("coords"), voxels.get("coords")));
  EXPECT_TRUE(same_bytes(file.get("point_to_voxel"), voxels.get("point_to_voxel")));
  const std::vector<Point> points = slope(40, 50);
  const Tensor coords = file.get("coords");
  const Tensor owner = file.get("point_to_voxel");
  for (std::size_t point = 0; point < points.size(); ++point) {
    const std::int32_t* site = coords.data<std::int32_t>() + 4 * owner.data<std::int64_t>()[point];
    EXPECT_EQ(site[0], 0);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      EXPECT_EQ(site[axis + 1], static_cast<std::int32_t>(std::floor(points[point][axis] / 0.05f)));
    }
  }
}

class EncoderTest : public RunTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EncoderTest, GivesCoarserSitesAndKeepsThoseOfTheInput) {
  const SafetensorsFile file = run_network({GetParam(), scan_});
  expect_contract(file, 128, 2000);
  EXPECT_EQ(file.dtype("input_coords"), DType::i32);
  EXPECT_EQ(file.shape("input_coords")[1], 4);
  // point_to_voxel speaks of the input's voxels; those of the result are an eighth of the grid.
  const Tensor owner = file.get("point_to_voxel");
  for (const std::int64_t voxel : owner.span<std::int64_t>()) {
    ASSERT_GE(voxel, -1);
    ASSERT_LT(voxel, file.shape("input_coords")[0]);
  }
  const Shape grid =
      std::string(GetParam()) == "second" ? Shape{1, 176, 200, 2} : Shape{1, 180, 180, 2};
  const Tensor coords = file.get("coords");
  for (std::int64_t i = 0; i < coords.elements(); ++i) {
    ASSERT_GE(coords.data<std::int32_t>()[i], 0);
    ASSERT_LT(coords.data<std::int32_t>()[i], grid[static_cast<int>(i % 4)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EncoderTest, ::testing::Values("centerpoint", "second"),
                         [](const auto& story) { return std::string(story.param); });

TEST_F(RunTest, SeveralScansFormOneBatchAndDoNotMeet) {
  const SafetensorsFile both = run_network({"minkunet42", scan_, other_, "--width-factor", "0.25"});
  expect_contract(both, 19, 2000 + 600);
  const auto batch_rows = rows_of<float>(both.get("coords"), both.get("features"));
  const SafetensorsFile second = run_network({"minkunet42", other_, "--width-factor", "0.25"});
  const auto alone_rows = rows_of<float>(second.get("coords"), second.get("features"));

  std::size_t row = 0;
  double largest = 0;
  for (const auto& [site, scores] : batch_rows) {
    if (site[0] == 0) continue;
    ASSERT_EQ(site[0], 1);
    ASSERT_LT(row, alone_rows.size());
    EXPECT_TRUE(std::equal(site.begin() + 1, site.end(), alone_rows[row].first.begin() + 1));
    for (std::size_t c = 0; c < scores.size(); ++c) {
      largest = std::max(largest, std::abs(double{scores[c]} - double{alone_rows[row].second[c]}));
    }
    ++row;
  }
  EXPECT_EQ(row, alone_rows.size());
  // Plans may differ with the number of rows, and with them the order of float sums: 42 layers of
  // at most 27 * 64 terms each, scores of size 1.
  EXPECT_LT(largest, 1e-4);
  // The points of the second scan lie in its own voxels.
  const Tensor owner = both.get("point_to_voxel");
  const Tensor coords = both.get("coords");
  for (std::int64_t point = 0; point < owner.elements(); ++point) {
    const std::int64_t voxel = owner.data<std::int64_t>()[point];
    ASSERT_EQ(coords.data<std::int32_t>()[voxel * 4], point < 2000 ? 0 : 1);
  }
}

TEST_F(RunTest, AnyNumberOfThreadsGivesTheSameBits) {
  const Tensor one =
      run_network({"minkunet42", scan_, "--threads", "1", "--width-factor", "0.5"}).get("features");
  const Tensor three =
      run_network({"minkunet42", scan_, "--threads", "3", "--width-factor", "0.5"}).get("features");
  EXPECT_TRUE(same_bytes(one, three));
}

TEST_F(RunTest, ASeedNamesTheWeights) {
  const auto scores = [&](const char* seed) {
    return run_network({"minkunet42", other_, "--width-factor", "0.25", "--seed", seed})
        .get("features");
  };
  const Tensor seven = scores("7");
  EXPECT_TRUE(same_bytes(seven, scores("7")));
  EXPECT_FALSE(same_bytes(seven, scores("8")));
}

TEST_F(RunTest, WeightsFromAFileAreTheOnesThatRun) {
  const auto network = nn::make_network("minkunet42", {.width_factor = 0.25, .seed = 7});
  nn::save_weights(*network, path("weights.safetensors"));
  const Tensor loaded = run_network({"minkunet42", other_, "--width-factor", "0.25", "--weights",
                                     path("weights.safetensors")})
                            .get("features");
  const Tensor seeded =
      run_network({"minkunet42", other_, "--width-factor", "0.25", "--seed", "7"}).get("features");
  EXPECT_TRUE(same_bytes(loaded, seeded));
}

TEST_F(RunTest, WeightsOfOtherChannelsAreRefusedByName) {
  const auto network = nn::make_network("minkunet42", {.in_channels = 5, .width_factor = 0.25});
  nn::save_weights(*network, path("weights.safetensors"));
  expect_refusal({"run", "minkunet42", other_, "--width-factor", "0.25", "--weights",
                  path("weights.safetensors"), "--out", path("out.safetensors")},
                 {"weights.safetensors", "stem", "[27, 5, 8]", "[27, 4, 8]"});
  EXPECT_FALSE(std::filesystem::exists(path("out.safetensors")));
}

TEST_F(RunTest, AScanWithoutIntensityGetsZeroForIt) {
  std::vector<Point> points = slope(20, 30);
  std::string text =
      "ply\nformat ascii 1.0\nelement vertex 600\nproperty float x\n"
      "property float y\nproperty float z\nend_header\n";
  for (Point& p : points) {
    std::ostringstream line;
    line.precision(9);
    line << p[0] << ' ' << p[1] << ' ' << p[2] << '\n';
    text += line.str();
    p[3] = 0;
  }
  write_text(path("bare.ply"), text);
  write_points(path("zero.ply"), points);
  const auto scores = [&](const char* name) {
    return run_network({"minkunet42", path(name), "--width-factor", "0.25"}).get("features");
  };
  EXPECT_TRUE(same_bytes(scores("bare.ply"), scores("zero.ply")));
}

TEST_F(RunTest, HalfPrecisionStaysNearFullPrecision) {
  const auto scores = [&](const char* precision) {
    return run_network({"minkunet42", other_, "--width-factor", "0.25", "--precision", precision})
        .get("features");
  };
  const Tensor exact = scores("f64");
  // Eight bits of mantissa (bf16) lose 2^-9 a rounding, eleven (f16) 2^-12; 42 layers, each rounded
  // once on store, on values of size 1, add up to well below this.
  const std::vector<std::pair<const char*, float>> bounds{
      {"f32", 1e-4f}, {"f16", 0.05f}, {"bf16", 0.4f}};
  for (const auto& [precision, bound] : bounds) {
    const Tensor rounded = scores(precision);
    float largest = 0;
    for (std::int64_t i = 0; i < exact.elements(); ++i) {
      largest = std::max(largest, std::abs(rounded.data<float>()[i] - exact.data<float>()[i]));
    }
    EXPECT_LT(largest, bound) << precision;
    EXPECT_GT(largest, 0) << precision;
  }
}

TEST_F(RunTest, JsonNamesEveryLayerAndWhatItCost) {
  const nlohmann::json said =
      run_json({"run", "minkunet42", scan_, "--threads", "2", "--repeat", "2"});
  EXPECT_EQ(said.at("network"), "minkunet42");
  EXPECT_EQ(said.at("points"), 2000);
  EXPECT_EQ(said.at("voxels"), said.at("rows_out"));
  EXPECT_EQ(said.at("channels_out"), 19);
  EXPECT_EQ(said.at("threads"), 2);
  EXPECT_EQ(said.at("trained"), false);
  EXPECT_EQ(said.at("total_ms").size(), 2u);
  EXPECT_GT(said.at("gflop"), 0);
  EXPECT_GT(said.at("peak_mib"), 0);
  int convolutions = 0;
  double gflop = 0;
  for (const auto& layer : said.at("layers")) {
    for (const char* field :
         {"rows_in", "rows", "pairs", "channels_in", "channels_out", "map_ms", "ms", "gflop"}) {
      EXPECT_GE(layer.at(field).get<double>(), 0) << layer.at("name") << ' ' << field;
    }
    const std::string kind = layer.at("kind");
    const bool above_one =
        kind.find("3x3x3") != std::string::npos || kind.find("2x2x2") != std::string::npos;
    if (above_one) {
      ++convolutions;
      EXPECT_NE(layer.at("plan"), "") << layer.at("name");
      EXPECT_GT(layer.at("pairs"), 0) << layer.at("name");
    }
    gflop += layer.at("gflop").get<double>();
  }
  EXPECT_EQ(convolutions, 42);
  EXPECT_NEAR(gflop, said.at("gflop").get<double>(), 1e-6 * gflop);
}

TEST_F(RunTest, NineWidthsAreThoseOfTheirPreset) {
  const auto scores = [&](const char* widths) {
    return run_network({"minkunet42", other_, "--width-factor", "0.25", "--widths", widths})
        .get("features");
  };
  const Tensor driving = scores("driving");
  EXPECT_TRUE(same_bytes(driving, scores("64,64,64,128,256,256,128,64,64")));
  EXPECT_FALSE(same_bytes(driving, scores("spvnas")));
}

TEST_F(RunTest, APictureOfCoarserSitesShowsHeightsAndNoClasses) {
  // One voxel at 0 stays one site through every layer of the encoder: as many rows as voxels.
  write_points(path("one.ply"), {{0.01f, -39.99f, -2.99f, 1}});
  const auto picture = [&](std::vector<std::string> arguments, const char* seed) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(),
                     {path("one.ply"), "--seed", seed, "--picture", path("picture.png")});
    const nlohmann::json said = run_json(arguments);
    EXPECT_EQ(said.at("voxels"), 1);
    EXPECT_EQ(said.at("rows_out"), 1);
    return read_text(path("picture.png"));
  };
  std::set<std::string> encoder;
  std::set<std::string> segmentation;
  for (const char* seed : {"1", "2", "3"}) {   // other weights, other classes
    encoder.insert(picture({"second"}, seed));
    segmentation.insert(picture({"minkunet42", "--width-factor", "0.1"}, seed));
  }
  EXPECT_EQ(encoder.size(), 1u);
  EXPECT_GT(segmentation.size(), 1u);
}

TEST_F(RunTest, ThePictureOfABatchSpeaksOfItsFirstScanAlone) {
  const auto picture = [&](const std::string& second) {
    run_well({"run", "second", scan_, second, "--picture", path("picture.png")});
    return read_text(path("picture.png"));
  };
  EXPECT_EQ(picture(other_), picture(scan_));   // the counts of the caption too
}

TEST_F(RunTest, TheTableForPeopleSaysThatTheWeightsAreUntrained) {
  const Outcome outcome = run_well(
      {"run", "minkunet42", other_, "--width-factor", "0.25", "--picture", path("picture.png")});
  for (const char* part :
       {"layer", "GFLOP/s", "peak resident memory", "untrained", "picture.png"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  }
  EXPECT_TRUE(read_text(path("picture.png")).starts_with("\x89PNG"));
}

}   // namespace
}   // namespace pumice::test
