// Arguments that several subcommands take.
#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/points/read.hpp>

#include "core/printable.hpp"
#include "options.hpp"
#include "scan_folder.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

/// How many letters have to be put in, taken out or changed to make one word of the other.
std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = std::exchange(row[0], i);   // of one letter less in both
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = before + (a[i - 1] == b[j - 1] ? 0 : 1);
      before = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

}   // namespace

void ScanArguments::add_to(CLI::App& command) {
  command.add_option(
      "--layout", layout,
      "Columns of a raw scan whose name does not tell: f32x4, f32x5, f16x5, f64x4, …");
}

PointCloud ScanArguments::read(const std::filesystem::path& path) const {
  std::error_code absent;
  if (std::filesystem::is_directory(path, absent)) {
    const std::string name = printable_path(path);
    const FolderScans folder = list_scans(path);
    PUMICE_EXPECTS(folder.scans.empty(), name, " is a folder; name one of its scans, as ",
                   printable_path(path / folder.scans.front()),
                   ", or go through all of them with `pumice run NETWORK ", name, "`");
    detail::raise_user(name, " is a folder without scans; name a ", kScanFiles, " file");
  }
  ReadOptions options;
  options.layout = layout;
  return read_points(path, options);
}

void replace_labels(PointCloud& cloud, const std::filesystem::path& path,
                    const std::filesystem::path& scan) {
  std::error_code absent;
  PUMICE_EXPECTS(std::filesystem::exists(path, absent), "--labels ", printable_path(path),
                 ": there is no such file; give the .label file of ", printable_path(scan),
                 ", or leave it out");
  cloud.labels = read_labels(path);
  PUMICE_EXPECTS(cloud.labels.rows() == cloud.size(), "--labels ", printable_path(path), ": ",
                 counted(cloud.labels.rows(), "label"), " for ", counted(cloud.size(), "point"),
                 "; give the labels of this scan");
}

void VoxelArguments::add_to(CLI::App& command, bool with_reduction) {
  take_numbers(command.add_option("--voxel", voxel,
                                  "Voxel size in metres: one number, or one for each axis"),
               "--voxel 0.1 0.1 0.2")
      ->expected(1, 3);
  take_numbers(
      command.add_option("--range", range,
                         "Crop to [X0, X1) x [Y0, Y1) x [Z0, Z1), in metres: X0 Y0 Z0 X1 Y1 Z1"),
      "--range -50 -50 -3 50 50 1")
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

std::int64_t numbers_in(const std::string& word) {
  std::int64_t count = 0;
  for (const char* at = word.c_str();; ++at) {
    char* end = nullptr;
    (void)std::strtod(at, &end);
    if (end == at) return 0;
    ++count;
    if (*end == '\0') return count;
    if (*end != ',') return 0;
    at = end;
  }
}

CLI::Option* take_numbers(CLI::Option* option, const std::string& example) {
  const auto is_number = [example](const std::string& text) -> std::string {
    if (numbers_in(text) == 1) return {};
    return printable(text) +
           " is no number; give numbers with spaces or commas between them, as in " + example;
  };
  return option->delimiter(',')->check(is_number);
}

std::vector<std::string> readable_words(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words) {
    const bool is_number =
        word.size() > 2 && word.starts_with("-.") && word[2] >= '0' && word[2] <= '9';
    if (is_number) word.insert(1, "0");
  }
  return words;
}

std::string similar_word(const std::vector<std::string>& known, const std::string& given) {
  constexpr std::size_t kTypos = 2;   // letters that are missing, wrong or too many
  std::string best;
  std::size_t fewest = kTypos + 1;
  for (const std::string& word : known) {
    const std::size_t distance = edits_between(given, word);
    if (distance < fewest) {
      fewest = distance;
      best = word;
    }
  }
  return best;
}

std::string similar_option(const CLI::App& command, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& word : option->get_lnames())
      known.push_back("--" + word);
  }
  return similar_word(known, name);
}

void warn_of_no_voxels(std::int64_t points, std::int64_t voxels) {
  if (voxels > 0) return;
  warn(points == 0 ? "there are no points, and so no voxels; is this the right file?"
                   : "none of " + counted(points, "point") +
                         " is in the range, so there are no voxels; give another --range");
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
                 "--precision f64 runs on the CPU alone: ", to_string(device),
                 " takes f32, f16 and bf16; add --device cpu");
  if (name != "tf32") return {.dtype = parse_dtype(name)};
  PUMICE_EXPECTS(device.kind == DeviceKind::cuda,
                 "--precision tf32 is how CUDA devices multiply f32, and ", to_string(device),
                 " is none; add --device cuda, or choose f32");
  return {.dtype = DType::f32, .tf32 = true};
}

std::string dropped_text(std::int64_t dropped_points) {
  if (dropped_points == 0) return {};
  return fmt::format(" ({} more, not finite, left out)", with_commas(dropped_points));
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
  PUMICE_EXPECTS(static_cast<int>(values.size()) == dimension, what, ": ",
                 counted(std::ssize(values), "number"), " for coordinates of ",
                 counted(dimension, "axis", "axes"), "; give one, or one for each axis");
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
