// Pictures show points where they are, in the colours that were asked for.
#include "cli/picture.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/points/simulate.hpp>

#include "cli/picture_colours.hpp"

namespace pumice::cli {
namespace {

/// A square of points on the ground, `half` metres each way around the sensor.
PointCloud carpet(double half, double step) {
  std::vector<float> xyz;
  for (double x = -half; x <= half; x += step) {
    for (double y = -half; y <= half; y += step) {
      for (const double value : {x, y, -1.7})
        xyz.push_back(static_cast<float>(value));
    }
  }
  PointCloud cloud;
  const auto points = static_cast<std::int64_t>(xyz.size() / 3);
  cloud.positions = Tensor::from<float>(xyz, {points, 3});
  return cloud;
}

PointCloud no_points() {
  PointCloud cloud;
  cloud.positions = Tensor({0, 3}, DType::f32);
  return cloud;
}

std::array<int, 3> pixel(const Image& image, int x, int y) {
  const auto at = 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) +
                       static_cast<std::size_t>(x));
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

/// Whether a pixel shows `colour`, however dark the shading made it.
bool shows(const std::array<int, 3>& seen, Colour colour) {
  const double length =
      std::sqrt(static_cast<double>(seen[0] * seen[0] + seen[1] * seen[1] + seen[2] * seen[2]));
  const double full = std::sqrt(
      static_cast<double>(colour.r * colour.r + colour.g * colour.g + colour.b * colour.b));
  if (length < 70) return false;
  const double agree =
      (seen[0] * static_cast<double>(colour.r) + seen[1] * static_cast<double>(colour.g) +
       seen[2] * static_cast<double>(colour.b)) /
      (length * full);
  return agree > 0.997;
}

struct Spotted {
  int pixels = 0;
  double x = 0;   // their mean
  double y = 0;
};

Spotted find(const Image& image, Colour colour, int left, int right) {
  Spotted spotted;
  for (int y = 0; y < image.height; ++y) {
    for (int x = left; x < right; ++x) {
      if (!shows(pixel(image, x, y), colour)) continue;
      ++spotted.pixels;
      spotted.x += x;
      spotted.y += y;
    }
  }
  if (spotted.pixels > 0) {
    spotted.x /= spotted.pixels;
    spotted.y /= spotted.pixels;
  }
  return spotted;
}

std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("pumice_" + name + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(Picture, HasTheSizeAskedFor) {
  const PointCloud cloud = carpet(20, 0.5);
  for (const auto& [width, height] :
       {std::pair{1600, 900}, std::pair{320, 240}, std::pair{501, 777}}) {
    const Image image = render(cloud, {}, {.width = width, .height = height, .caption = "carpet"});
    EXPECT_EQ(image.width, width);
    EXPECT_EQ(image.height, height);
    EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(width * height * 3));
  }
}

TEST(Picture, AheadIsUpAndLeftIsLeftInTheBirdsEyeView) {
  const PointCloud cloud = carpet(20, 0.25);
  std::vector<std::int32_t> ahead, left;
  for (std::int64_t row = 0; row < cloud.size(); ++row) {
    const float* p = cloud.positions.data<float>() + 3 * row;
    ahead.push_back(std::hypot(p[0] - 10, p[1]) < 2 ? 1 : 0);
    left.push_back(std::hypot(p[0], p[1] - 10) < 2 ? 1 : 0);
  }
  const int begin = 1000;   // the right 600 pixels: the bird's-eye view
  const double middle_x = (1600 * 61 / 100 + 2 + 1600) / 2.0, middle_y = (900 + 28) / 2.0;
  const Spotted up = find(render(cloud, ahead, {}), class_colour(1), begin, 1600);
  ASSERT_GT(up.pixels, 200);
  EXPECT_NEAR(up.x, middle_x, 6);
  EXPECT_LT(up.y, middle_y - 60);
  const Spotted aside = find(render(cloud, left, {}), class_colour(1), begin, 1600);
  ASSERT_GT(aside.pixels, 200);
  EXPECT_LT(aside.x, middle_x - 60);
  EXPECT_NEAR(aside.y, middle_y, 6);
}

TEST(Picture, ThePerspectiveShowsThePointsToo) {
  const PointCloud cloud = carpet(20, 0.25);
  const std::vector<std::int32_t> classes(static_cast<std::size_t>(cloud.size()), 3);
  const Spotted seen = find(render(cloud, classes, {}), class_colour(3), 200, 970);
  EXPECT_GT(seen.pixels, 20'000);
}

TEST(Picture, NoPointsAreAPictureWithACaption) {
  const PictureOptions bare;
  PictureOptions captioned;
  captioned.caption = "nothing here";
  for (const ColourBy by : {ColourBy::height, ColourBy::intensity, ColourBy::label}) {
    captioned.by = by;
    const Image image = render(no_points(), {}, captioned);
    EXPECT_EQ(image.pixels.size(), 1600u * 900u * 3u);
    EXPECT_NE(image.pixels, render(no_points(), {}, bare).pixels) << "the caption is not drawn";
  }
}

TEST(Picture, ColoursFollowHeightIntensityAndLabel) {
  const PointCloud cloud = simulate({.seed = 1});
  const Image height = render(cloud, {}, {.by = ColourBy::height});
  const Image intensity = render(cloud, {}, {.by = ColourBy::intensity});
  const Image label = render(cloud, {}, {.by = ColourBy::label});
  EXPECT_NE(height.pixels, intensity.pixels);
  EXPECT_NE(height.pixels, label.pixels);
  EXPECT_GT(find(label, label_colour(40), 1000, 1600).pixels, 1000);   // road
  EXPECT_GT(find(label, label_colour(50), 1000, 1600).pixels, 300);    // houses
}

TEST(Picture, TheLegendNamesTheClassesThatOccur) {
  PointCloud cloud = carpet(5, 0.5);
  cloud.labels = Tensor::full({cloud.size()}, DType::i32, 40);
  cloud.labels.data<std::int32_t>()[0] = 10;
  const PointColours paint = colour_points(cloud, {}, ColourBy::label);
  ASSERT_EQ(paint.classes.size(), 2u);
  EXPECT_EQ(paint.classes[0].name, "road");
  EXPECT_EQ(paint.classes[0].points, cloud.size() - 1);
  EXPECT_EQ(paint.classes[1].name, "car");
  EXPECT_TRUE(paint.quantity.empty());
}

TEST(Picture, OddPointsDoNotHurt) {
  PointCloud cloud = carpet(3, 0.1);
  float* xyz = cloud.positions.data<float>();
  xyz[0] = std::numeric_limits<float>::quiet_NaN();
  xyz[4] = std::numeric_limits<float>::infinity();
  xyz[6] = 1e30f;
  xyz[9] = -1e30f;
  EXPECT_GT(find(render(cloud, {}, {}), scale_colour(ColourBy::height, 0), 1000, 1600).pixels, 0);

  PointCloud one;   // a single point, far from the origin
  one.positions = Tensor::from<float>(std::array<float, 3>{1e6f, -1e6f, 5}, {1, 3});
  EXPECT_EQ(render(one, {}, {.width = 320, .height = 240}).pixels.size(), 320u * 240u * 3u);
}

TEST(Picture, OnePointIsShownWithTheSurroundingsOfNone) {
  PointCloud one;
  one.positions = Tensor::from<float>(std::array<float, 3>{0, 0, 0}, {1, 3});
  const Image with = render(one, {}, {});
  const Image without = render(no_points(), {}, {});
  int changed = 0;
  for (int y = 0; y < with.height; ++y) {
    for (int x = 1000; x < with.width; ++x)   // the bird's-eye view: rings and their labels
      changed += pixel(with, x, y) == pixel(without, x, y) ? 0 : 1;
  }
  EXPECT_GT(changed, 0);
  EXPECT_LT(changed, 100);
}

TEST(Picture, WhatTheScanLacksIsSaid) {
  const auto refused = [](const PointCloud& cloud, std::vector<std::int32_t> classes,
                          PictureOptions options, const char* part) {
    try {
      render(cloud, classes, options);
      ADD_FAILURE() << part << " was accepted";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const PointCloud cloud = carpet(1, 0.5);
  refused(cloud, {}, {.by = ColourBy::label}, "colour = label");
  refused(cloud, {}, {.by = ColourBy::intensity}, "colour = intensity");
  refused(cloud, {1, 2, 3}, {}, "classes has 3 entries");
  refused(cloud, {}, {.width = 10}, "picture width = 10");
  refused(cloud, {}, {.height = 100'000}, "picture height = 100000");
  EXPECT_THROW(parse_colour_by("colour"), UserError);
  EXPECT_EQ(parse_colour_by("label"), ColourBy::label);
}

TEST(Picture, ThePngIsWrittenWholeOrNotAtAll) {
  const auto folder = fresh_folder("picture_test");
  const Image image = render(carpet(5, 0.5), {}, {.width = 400, .height = 300});
  const auto path = folder / "carpet.png";
  for (int time = 0; time < 2; ++time) {   // the second one replaces the first
    write_png(path, image);
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_GT(bytes.size(), 1000u);
    EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
    EXPECT_EQ(bytes.substr(16, 8), std::string("\0\0\x01\x90\0\0\x01\x2c", 8));   // 400 x 300
    EXPECT_EQ(bytes.substr(bytes.size() - 8, 4), "IEND");
  }
  const auto taken = folder / "taken.png";
  std::filesystem::create_directories(taken / "inside");
  for (const auto& wrong : {folder / "missing" / "x.png", taken}) {
    try {
      write_png(wrong, image);
      ADD_FAILURE() << wrong << " was written";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(wrong.string()), std::string::npos) << error.what();
    }
  }
  const auto entries = std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_EQ(entries, 2) << "a temporary file was left behind";
  std::filesystem::remove_all(folder);
}

}   // namespace
}   // namespace pumice::cli
