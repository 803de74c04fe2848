// Reads a scan of any format, or simulates one, and writes it as .ply, coloured by height, and
// .npy.
//
//     pumice_example_point_files [SCAN] [FOLDER]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>

#include <pumice/core/error.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/write.hpp>

namespace {

using namespace pumice;

/// Blue at 3 m below the sensor, red at 3 m above it.
Tensor colours_by_height(const PointCloud& cloud) {
  Tensor colours({cloud.size(), 3}, DType::u8);
  const float* position = cloud.positions.data<float>();
  std::uint8_t* colour = colours.data<std::uint8_t>();
  for (std::int64_t point = 0; point < cloud.size(); ++point) {
    const float share = std::clamp((position[point * 3 + 2] + 3) / 6, 0.0f, 1.0f);
    const auto red = static_cast<std::uint8_t>(std::lround(255 * share));
    colour[point * 3] = red;
    colour[point * 3 + 1] = 64;
    colour[point * 3 + 2] = static_cast<std::uint8_t>(255 - red);
  }
  return colours;
}

void convert(const PointCloud& cloud, const std::filesystem::path& folder) {
  const Tensor colours = colours_by_height(cloud);
  write_ply(folder / "cloud.ply", cloud, {.colour = colours});
  write_npy(folder / "positions.npy", cloud.positions);

  const PointCloud again = read_points(folder / "cloud.ply");
  PUMICE_ENSURES(again.size() == cloud.size(), again.size(), " points came back");
  std::cout << cloud.size() << " points written to " << folder / "cloud.ply"
            << " and " << folder / "positions.npy" << '\n';
}

}   // namespace

int main(int argc, char** argv) {
  try {
    const PointCloud cloud = argc > 1 ? read_points(argv[1]) : simulate({.seed = 1});
    convert(cloud, argc > 2 ? argv[2] : ".");
  } catch (const UserError& error) {   // a file that is not what it says, named in one sentence
    std::cerr << error.what() << '\n';
    return 1;
  }
}
