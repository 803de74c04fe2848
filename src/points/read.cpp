// Which reader a file name asks for.
#include <pumice/points/read.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <system_error>

#include "core/file.hpp"
#include "core/printable.hpp"
#include "points/formats.hpp"
#include "points/text.hpp"

namespace pumice {
namespace {

using detail::lower;

detail::RawOptions raw_options(std::string_view name, const ReadOptions& options) {
  detail::RawOptions raw;
  const bool nuscenes = lower(name).ends_with(".pcd.bin");
  if (nuscenes) raw.fifth = detail::Role::ring;
  if (!options.layout.empty()) {
    const auto layout = detail::parse_layout(options.layout);
    PUMICE_EXPECTS(layout.has_value(), "layout = \"", printable(options.layout),
                   "\"; give f16, f32 or f64, an x, and 3 to 64 columns, like f32x4");
    raw.layout = *layout;
  } else if (const auto named = detail::layout_of_name(name)) {
    raw.layout = *named;
  } else if (nuscenes) {
    raw.layout = {detail::Scalar::f32, 5};
  }
  return raw;
}

struct Ending {
  std::string_view text;
  PointFormat format;
};
constexpr Ending kEndings[] = {
    {".pcd.bin", PointFormat::raw}, {".bin", PointFormat::raw}, {".pcd", PointFormat::pcd},
    {".ply", PointFormat::ply},     {".npy", PointFormat::npy}, {".npz", PointFormat::npz},
};

/// Null for a name that does not tell.
const Ending* ending_of(const std::filesystem::path& path) {
  const std::string name = lower(path.filename().string());
  const auto* found = std::find_if(std::begin(kEndings), std::end(kEndings),
                                   [&](const Ending& e) { return name.ends_with(e.text); });
  return found == std::end(kEndings) ? nullptr : found;
}

PointFormat format_of(const std::filesystem::path& path, const ReadOptions& options) {
  std::error_code absent;
  PUMICE_EXPECTS(!std::filesystem::is_directory(path, absent), printable_path(path),
                 " is a folder, and a scan is a file; name one of the files in it");
  if (const Ending* ending = ending_of(path)) return ending->format;
  PUMICE_EXPECTS(std::filesystem::exists(path, absent), printable_path(path),
                 ": there is no such file or folder");
  PUMICE_EXPECTS(
      !options.layout.empty(), printable_path(path),
      ": its name does not tell what it is; scans end in .bin, .pcd, .ply, .npy or "
      ".npz; for raw numbers give their layout, as f32x4 (in the program --layout f32x4)");
  return PointFormat::raw;
}

}   // namespace

std::optional<std::string> scan_stem(const std::filesystem::path& path) {
  const Ending* ending = ending_of(path);
  if (ending == nullptr) return std::nullopt;
  const std::string name = path.filename().string();
  return name.substr(0, name.size() - ending->text.size());
}

PointCloud read_points_from(std::span<const std::byte> bytes, PointFormat format,
                            const ReadOptions& options, std::string_view given_name) {
  const std::string name = printable_path(given_name);
  PUMICE_EXPECTS(format == PointFormat::raw || options.layout.empty(), name,
                 ": describes its layout itself; leave layout = ", printable(options.layout),
                 " out");
  switch (format) {
    case PointFormat::raw: return detail::read_raw(bytes, raw_options(name, options), name);
    case PointFormat::pcd: return detail::read_pcd(bytes, name);
    case PointFormat::ply: return detail::read_ply(bytes, name);
    case PointFormat::npy: return detail::read_npy_points(bytes, name);
    case PointFormat::npz: return detail::read_npz(bytes, name);
  }
  detail::raise_internal(std::source_location::current(), "point format ",
                         static_cast<int>(format));
}

PointCloud read_points(const std::filesystem::path& path, const ReadOptions& options) {
  const PointFormat format = format_of(path, options);
  const Buffer<std::byte> bytes = detail::read_file(path);
  return read_points_from(bytes.span(), format, options, path.string());
}

Tensor read_labels(const std::filesystem::path& path) {
  const Ending* scan = ending_of(path);
  PUMICE_EXPECTS(scan == nullptr, printable_path(path), ": ", scan->text,
                 " is the ending of scans; give the .label file of this one");
  const Buffer<std::byte> bytes = detail::read_file(path);
  PUMICE_EXPECTS(bytes.size() % 4 == 0, printable_path(path), ": ", bytes.size(),
                 " bytes are not a whole number of labels of 4 bytes");
  Tensor labels({bytes.size() / 4}, DType::i32);
  auto* out = labels.data<std::int32_t>();
  for (std::int64_t i = 0; i < labels.elements(); ++i) {
    std::uint32_t label = 0;
    std::memcpy(&label, bytes.data() + 4 * i, sizeof label);
    out[i] = static_cast<std::int32_t>(label & 0xffffu);   // above it: the instance
  }
  return labels;
}

Tensor read_npy(const std::filesystem::path& path) {
  const Buffer<std::byte> bytes = detail::read_file(path);
  return detail::read_npy_array(bytes.span(), printable_path(path));
}

}   // namespace pumice
