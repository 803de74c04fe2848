// Arguments that several subcommands take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/device.hpp>
#include <pumice/core/dtype.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/points/point_cloud.hpp>
#include <pumice/points/voxelize.hpp>

namespace CLI {
class App;
class Option;
}   // namespace CLI

namespace pumice::cli {

/// `--layout` of a raw scan.
struct ScanArguments {
  std::string layout;
  void add_to(CLI::App& command);
  /// UserError for a folder too, naming a scan in it.
  PointCloud read(const std::filesystem::path& path) const;
};

/// Gives a scan, read from `scan`, the labels of a SemanticKITTI .label file; UserError for another
/// number of them, and where there is no such file.
void replace_labels(PointCloud& cloud, const std::filesystem::path& path,
                    const std::filesystem::path& scan);

/// `--voxel S | SX SY SZ`, `--range X0 Y0 Z0 X1 Y1 Z1`, `--reduction R`.
struct VoxelArguments {
  std::vector<float> voxel;
  std::vector<float> range;
  std::string reduction = "mean";
  /// A command that shows no features takes no `--reduction`.
  void add_to(CLI::App& command, bool with_reduction = true);
  /// `fallback` fills in what was not given.
  VoxelOptions options(const VoxelOptions& fallback) const;
  /// What the network was made for fills in what was not given.
  VoxelOptions options(const nn::NetworkInfo& info) const;
  /// The network's grid, which holds only while voxel size and range are its own.
  std::optional<Axes> grid(const nn::NetworkInfo& info) const;
};

/// Of a layer, for `--channels`.
inline constexpr std::int64_t kMostChannels = 65536;

/// `--threads N`, applied at once.
void add_threads(CLI::App& command);

/// For CLI11's `check`: digits alone, below 2^64. Empty, or what is wrong.
std::string whole_number(const std::string& text);

/// How many numbers a word is, with commas between them; 0 for any other word.
std::int64_t numbers_in(const std::string& word);

/// An option of several numbers, with spaces or commas between them; `example` is how they are
/// given, for what is said of anything else.
CLI::Option* take_numbers(CLI::Option* option, const std::string& example);

/// The words of a command line as CLI11 understands them, which takes -.5 for an option: -0.5.
std::vector<std::string> readable_words(int argc, const char* const* argv);

/// The one of `known` that is spelt most like `given`, as in "doctor" for "doctr"; empty where none
/// is.
std::string similar_word(const std::vector<std::string>& known, const std::string& given);

/// The option of `command` that is spelt most like `name`, as in "--levels" for "--level"; empty
/// where none is.
std::string similar_option(const CLI::App& command, const std::string& name);

/// Says on standard error that there is nothing to compute from, where no point is in a voxel.
void warn_of_no_voxels(std::int64_t points, std::int64_t voxels);

/// For CLI11's `check`: anything but an empty text. Empty, or what is wrong.
std::string not_empty(const std::string& text);

/// `--precision`: the types that networks and layers run in; `with_tf32` where a device may run
/// them.
void add_precision(CLI::App& command, std::string& precision, const std::string& what,
                   bool with_tf32);

/// What `--precision` asks for.
struct Precision {
  DType dtype = DType::f32;   // of what is stored
  bool tf32 = false;          // f32 that tensor cores multiply as tf32
};
/// UserError where `device` does not have it; "f32", "tf32" …
Precision parse_precision(const std::string& name, Device device);

/// " (3 more, not finite, left out)" behind a number of points; nothing when there are none.
std::string dropped_text(std::int64_t dropped_points);

/// `--json`: the result on standard output for machines, and nothing else there.
void add_json(CLI::App& command, bool& json);
/// In ASCII, with escapes for the rest, so that no name in it reaches a terminal as a command;
/// bytes that are no UTF-8 become U+FFFD.
void print_json(const nlohmann::ordered_json& value);

/// One number, or one for each of `dimension` axes; `what` names the option in the error.
Axes per_axis(const std::vector<std::int32_t>& values, int dimension, std::int32_t fallback,
              const char* what);

/// Coordinates of a scan's voxels as a set; `batch_size` keeps empty trailing scans.
CoordinateSetPtr voxel_set(const Voxels& voxels, std::int32_t batch_size,
                           const std::optional<Axes>& spatial_shape = std::nullopt);

}   // namespace pumice::cli
