// Arguments that several subcommands take.
#include "arguments.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include <unistd.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/points/read.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {

void ScanArguments::add_to(CLI::App& command) {
  command.add_option(
      "--layout", layout,
      "Columns of a raw scan whose name does not tell: f32x4, f32x5, f16x5, f64x4, …");
}

PointCloud ScanArguments::read(const std::filesystem::path& path) const {
  ReadOptions options;
  options.layout = layout;
  return read_points(path, options);
}

void replace_labels(PointCloud& cloud, const std::filesystem::path& path) {
  cloud.labels = read_labels(path);
  PUMICE_EXPECTS(cloud.labels.rows() == cloud.size(), "--labels ", printable_path(path), ": ",
                 cloud.labels.rows(), " labels for ", cloud.size(),
                 " points; give the labels of this scan");
}

void VoxelArguments::add_to(CLI::App& command, bool with_reduction) {
  command.add_option("--voxel", voxel, "Voxel size in metres: one number, or one an axis")
      ->expected(1, 3);
  command
      .add_option("--range", range,
                  "Crop to [X0, X1) x [Y0, Y1) x [Z0, Z1), in metres: X0 Y0 Z0 X1 Y1 Z1")
      ->expected(6);
  if (!with_reduction) return;
  command
      .add_option("--reduction", reduction,
                  "Features of points that share a voxel: first, mean, max or sum")
      ->capture_default_str();
}

VoxelOptions VoxelArguments::options(const VoxelOptions& fallback) const {
  VoxelOptions result = fallback;
  PUMICE_EXPECTS(voxel.size() != 2,
                 "--voxel: 2 numbers given; give one, or one for each of x, y, z");
  if (voxel.size() == 1) result.size = {voxel[0], voxel[0], voxel[0]};
  if (voxel.size() == 3) std::copy(voxel.begin(), voxel.end(), result.size.begin());
  if (!range.empty()) {
    result.range.emplace();
    std::copy(range.begin(), range.end(), result.range->begin());
  }
  result.reduction = parse_reduction(reduction);
  return result;
}

VoxelOptions VoxelArguments::options(const nn::NetworkInfo& info) const {
  const auto narrowed = [](double metres) { return static_cast<float>(metres); };
  VoxelOptions fallback;
  std::transform(info.voxel_size.begin(), info.voxel_size.end(), fallback.size.begin(), narrowed);
  if (info.range) {
    fallback.range.emplace();
    std::transform(info.range->begin(), info.range->end(), fallback.range->begin(), narrowed);
  }
  return options(fallback);
}

std::optional<Axes> VoxelArguments::grid(const nn::NetworkInfo& info) const {
  return voxel.empty() && range.empty() ? info.spatial_shape : std::nullopt;
}

void add_threads(CLI::App& command) {
  command
      .add_option_function<int>("--threads", set_threads,
                                "Threads to use; 0, the default, stands for all processors")
      ->trigger_on_parse();
}

std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc() && end == text.data() + text.size()) return {};
  return printable(text) + " is not a whole number from 0 to 2^64 - 1";
}

std::string not_empty(const std::string& text) {
  return text.empty() ? "an empty text says nothing; give a value or leave it out" : "";
}

void add_precision(CLI::App& command, std::string& precision, const std::string& what,
                   bool with_tf32) {
  std::vector<std::string> names{"f32", "f64", "f16", "bf16"};
  if (with_tf32) names.insert(names.begin() + 1, "tf32");
  command.add_option("--precision", precision, what)
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

Precision parse_precision(const std::string& name, Device device) {
  PUMICE_EXPECTS(name != "f64" || device.kind == DeviceKind::cpu,
                 "--precision f64 is for the CPU, and not for ", to_string(device),
                 "; choose f32, tf32, f16 or bf16, or --device cpu");
  if (name != "tf32") return {.dtype = parse_dtype(name)};
  PUMICE_EXPECTS(device.kind == DeviceKind::cuda,
                 "--precision tf32 is how CUDA devices multiply f32, and ", to_string(device),
                 " is none; add --device cuda, or choose f32");
  return {.dtype = DType::f32, .tf32 = true};
}

void check_ending(const char* option, const std::string& path, std::string_view ending,
                  const char* what) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  };
  PUMICE_EXPECTS(path.size() >= ending.size() &&
                     std::equal(path.end() - static_cast<std::ptrdiff_t>(ending.size()), path.end(),
                                ending.begin(), same),
                 option, ' ', printable_path(path), ": ", what, " is written as ", ending,
                 "; give the name that ending");
}

std::string dropped_text(std::int64_t dropped_points) {
  if (dropped_points == 0) return {};
  return fmt::format(" ({} more, not finite, left out)", with_commas(dropped_points));
}

void check_outputs(const std::vector<std::filesystem::path>& inputs,
                   const std::vector<std::filesystem::path>& outputs) {
  const auto same = [](const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code absent;   // what is not there yet is compared by name
    return std::filesystem::equivalent(a, b, absent) ||
           std::filesystem::weakly_canonical(a, absent) ==
               std::filesystem::weakly_canonical(b, absent);
  };
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->empty()) continue;
    for (const std::filesystem::path& input : inputs) {
      PUMICE_EXPECTS(input.empty() || !same(*output, input), printable_path(*output),
                     " would be read and written over; give the result another name");
    }
    for (auto other = outputs.begin(); other != output; ++other) {
      PUMICE_EXPECTS(other->empty() || !same(*output, *other), printable_path(*output),
                     " would be written twice; give each result its own name");
    }
    const std::filesystem::path folder =
        output->has_parent_path() ? output->parent_path() : std::filesystem::path(".");
    PUMICE_EXPECTS(::access(folder.c_str(), W_OK | X_OK) == 0, printable_path(*output),
                   ": cannot be written (", std::strerror(errno),
                   "); choose a folder that exists and is yours");
    PUMICE_EXPECTS(!std::filesystem::is_directory(*output), printable_path(*output),
                   ": is a folder; give the name of a file");
    AtomicFile::expect_replaceable(*output);
    for (const char* stream : {"/dev/stdout", "/dev/stderr"}) {
      PUMICE_EXPECTS(!same(*output, stream), printable_path(*output),
                     " is where the program prints; give the result another name");
    }
  }
}

void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print the result as JSON");
}

void print_json(const nlohmann::ordered_json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
}

Axes per_axis(const std::vector<std::int32_t>& values, int dimension, std::int32_t fallback,
              const char* what) {
  if (values.empty()) return axes(dimension, fallback);
  if (values.size() == 1) return axes(dimension, values[0]);
  PUMICE_EXPECTS(static_cast<int>(values.size()) == dimension, what, ": ", values.size(),
                 " numbers for coordinates of ", dimension, " axes; give one, or one an axis");
  Axes result{};
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

CoordinateSetPtr voxel_set(const Voxels& voxels, std::int32_t batch_size,
                           const std::optional<Axes>& spatial_shape) {
  CoordinateOptions options;
  options.batch_size = batch_size;
  options.spatial_shape = spatial_shape;
  return CoordinateSet::create(voxels.coordinates, options);
}

}   // namespace pumice::cli
