// What a file of weights says of itself in its metadata, so that running it takes nothing else:
// network, widths, voxel size, and what its classes are called, look like and stand for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/core/safetensors.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/nn/networks.hpp>

namespace pumice::nn {

/// Of a network of relational graph convolutions, "rgcn".
struct RelationalCard {
  std::vector<std::int64_t> widths;
  std::int64_t relations = 0;
  std::optional<std::int64_t> bases;
  std::optional<std::int64_t> blocks;
  EntryReduction reduction = EntryReduction::mean;
};

/// Every entry may be absent: files that say nothing are weights all the same.
///
///   network      "minkunet42"
///   in_channels  "4": features of a voxel
///   outputs      "19": features that come out, one a class
///   widths       "32,32,64,128,256,256,128,96,96", of minkunet42
///   features     "x,y,z,intensity", the mean over a voxel's points; others are refused
///   voxel_size   metres: "0.1", or "0.1,0.1,0.2" for x, y, z
///   classes      "car,road,…": names in the order of the outputs, as many
///   colours      "#5fa8ff,#c65bd6,…": one a class
///   labels       "10 252,40 60,…": the numbers of label files that each class stands for
///
/// Where the network is "rgcn", these too; it says in_channels, widths and relations:
///
///   in_channels  of a node's features; of nodes without features their number
///   layers       "2"
///   widths       "16,4": what comes out of each layer, the last of them scores
///   activation   "relu", between layers; others are refused
///   relations    "90"
///   bases        "30", or blocks "4": what its matrices are made of; absent: they are whole
///   aggr         "mean", "sum" or "max" of the neighbours of a relation
struct ModelCard {
  std::string network;
  std::optional<std::int64_t> in_channels;
  std::optional<std::int64_t> outputs;               // those of `classes` where only they are said
  std::optional<MinkUNetWidths> widths;              // of minkunet42
  std::optional<RelationalCard> relational;          // of rgcn
  std::optional<std::array<double, 3>> voxel_size;   // metres, x y z
  std::vector<std::string> classes;
  std::vector<std::array<std::uint8_t, 3>> colours;   // red, green, blue of each class, or none
  std::vector<std::vector<std::int32_t>> labels;      // of each class, or none
};

/// Taken at its word only where it makes sense: UserError naming `file`, the entry and its value
/// where that cannot be. Entries of other names are nobody's business.
ModelCard read_model_card(const std::map<std::string, std::string>& metadata,
                          std::string_view file);
/// The same of a file; where that does not say how many outputs there are, those of its classifier.
ModelCard read_model_card(const SafetensorsFile& file);

/// The file that `given` names: weights that are installed with Pumice where it is the name of
/// some, as "streets" is, and there is no such file; else `given` itself. UserError for a name,
/// without dots and slashes, that is neither; it lists those that are installed.
std::string find_weights(const std::string& given);

/// `widths` times `factor`, rounded to nearest, at least 1: what MinkUNet42 makes of both.
/// UserError for a factor that is not above 0 or makes a layer too wide.
MinkUNetWidths scaled_widths(const MinkUNetWidths& widths, double factor);

/// The widths that the tensors of a MinkUNet42 show; nothing where they are no such network's.
std::optional<MinkUNetWidths> widths_in(const SafetensorsFile& file);

/// The options of `pumice run` that give a network these widths, the shortest:
/// "--width-factor 0.25", "--widths driving --width-factor 0.5", "--widths 8,8,16,…".
std::string options_for(const MinkUNetWidths& widths);

}   // namespace pumice::nn
