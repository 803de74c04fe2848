// Pictures of point clouds: a perspective view and a bird's-eye view side by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <pumice/points/point_cloud.hpp>

namespace pumice::cli {

enum class ColourBy : std::uint8_t { height, intensity, label };

/// "height", "intensity" or "label"; UserError for others.
ColourBy parse_colour_by(const std::string& name);

struct Colour {   // 0 to 1, as shown on the screen
  float r = 0;
  float g = 0;
  float b = 0;
};

/// How a class is shown.
struct ClassStyle {
  std::string name;
  Colour colour;
};

struct PictureOptions {
  int width = 1600;   // pixels, 320 to 16384
  int height = 900;   // pixels, 240 to 16384
  ColourBy by = ColourBy::height;
  std::string caption{};   // one line at the top, in UTF-8
  /// Of classes 0, 1, …; without them classes go by their numbers.
  std::vector<ClassStyle> styles{};
};

/// 8-bit RGB, row by row from the top.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// UserError for a width or a height that a picture cannot have.
void check_picture_size(const PictureOptions& options);

/// Draws `cloud`. Colours come from `classes` (one a point, any numbers: a network's answer) where
/// it is not empty (as `options.styles` shows them; one outside of these is no class), else from
/// what `options.by` names: labels as SemanticKITTI's classes, with a legend of those that occur.
/// Points that are not finite are left out. UserError when the cloud lacks what it is to be
/// coloured by.
Image render(const PointCloud& cloud, std::span<const std::int32_t> classes,
             const PictureOptions& options);

/// Writes a PNG; `path` is never half a picture. UserError, with the path, when that cannot be
/// done.
void write_png(const std::filesystem::path& path, const Image& image);

}   // namespace pumice::cli
