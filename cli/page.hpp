// Pages that show a point cloud in a browser: one file that loads nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/points/point_cloud.hpp>

#include "picture.hpp"

namespace pumice::cli {

struct PageOptions {
  std::string name{};               // of the scan: any bytes
  ColourBy by = ColourBy::height;   // what the page shows first; readers may choose another
  std::string version = PUMICE_VERSION;
  /// One a point where it is not empty: a network's answer, in place of the cloud's labels.
  std::span<const std::int32_t> classes{};
  std::vector<ClassStyle> styles{};   // of those classes, as in PictureOptions
  /// The classes that labels say, one a point, negative where they say none of them; empty where
  /// there are no labels. With them the page switches between prediction, truth and error.
  std::span<const std::int32_t> truth{};
  std::vector<std::string> notes{};   // sentences below the name: any bytes
};

/// The page as HTML. Positions are 16-bit integers in a box around the cloud, so a point takes 8
/// bytes, and up to 4 more for intensity and class. Left out, and said so on the page: points that
/// are not finite, and those that lie so far from all others that the box would be too coarse for
/// these. UserError when the cloud lacks what it is to be coloured by, or has more points than a
/// browser can show.
std::string page(const PointCloud& cloud, const PageOptions& options);

/// Writes a page; `path` is never half of one. UserError, with the path, when that cannot be done.
void write_page(const std::filesystem::path& path, const std::string& html);

std::string base64(std::span<const std::byte> bytes);

/// Text that HTML shows as it is, between tags and in quoted attributes; bytes that are no UTF-8
/// become U+FFFD, control characters too.
std::string html_text(std::string_view text);

/// A file of cli/page, "page.css", in pieces; embedded when the program is built.
std::span<const std::string_view> page_part(std::string_view name);

}   // namespace pumice::cli
