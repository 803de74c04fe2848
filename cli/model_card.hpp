// What a file of weights says of itself in its metadata, so that running it takes nothing else:
// network, widths, voxel size, and what its classes are called, look like and stand for.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <pumice/nn/networks.hpp>

#include "picture.hpp"

namespace pumice::cli {

/// Every entry may be absent: files that say nothing are weights all the same.
///
///   network     "minkunet42"
///   widths      "32,32,64,128,256,256,128,96,96"
///   features    "x,y,z,intensity", the mean over a voxel's points
///   voxel_size  metres: "0.1", or "0.1,0.1,0.2" for x, y, z
///   classes     "car,road,…": names in the order of the outputs
///   colours     "#5fa8ff,#c65bd6,…": one a class
///   labels      "10 252,40 60,…": the numbers of label files that each class stands for
struct ModelCard {
  std::string network;
  std::optional<nn::MinkUNetWidths> widths;
  std::optional<std::array<double, 3>> voxel_size;   // metres, x y z
  std::vector<ClassStyle> classes;
  std::vector<std::vector<std::int32_t>> labels;   // of each class; empty where it is not said
};

/// The file that `--weights` names: one that comes along where `given` is the name of one, as
/// "streets" is, and there is no such file; else `given` itself. UserError for a name, without dots
/// and slashes, that is neither.
std::string find_weights(const std::string& given);

/// UserError naming the file, the entry and its value where that cannot be.
ModelCard read_model_card(const std::filesystem::path& weights);

}   // namespace pumice::cli
