// Counts entries a pixel, and draws bars.
#include "picture_pattern.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "picture_canvas.hpp"
#include "picture_colours.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

constexpr Colour kEmpty{0.075f, 0.094f, 0.129f};   // of the pattern, where no entry is

class PatternPicture {
 public:
  PatternPicture(const EdgesInput& edges, const std::vector<LengthClass>& classes,
                 const PictureOptions& options)
      : edges_(edges),
        classes_(classes),
        options_(options),
        canvas_(options.width, options.height, kPictureBackground),
        unit_(std::clamp(options.height / 450, 1, 8)),
        font_(10 * unit_) {
    const int margin = 6 * unit_, top = 18 * unit_;
    const int side = std::min(options.height - top - margin, options.width * 11 / 20);
    pattern_ = {margin, top, side, side};
    const int left = pattern_.left + side + 4 * margin;
    bars_ = {left, top, options.width - left - margin, side};
  }

  Image draw() {
    const int margin = 6 * unit_;
    canvas_.text(margin, margin, font_.fitted(options_.caption, options_.width - 2 * margin),
                 kPictureText, font_);
    if (edges_.rows > 0 && edges_.columns > 0) draw_pattern();
    draw_bars();
    return canvas_.image();
  }

 private:
  /// Of `extent` rows or columns beside `other` of the others.
  static int side_of(std::int64_t extent, std::int64_t other, int room) {
    const double part = static_cast<double>(extent) / static_cast<double>(std::max(extent, other));
    return std::max(1, static_cast<int>(room * std::max(part, 1.0 / 16)));
  }

  void draw_pattern() {
    const int width = side_of(edges_.columns, edges_.rows, pattern_.width);
    const int height = side_of(edges_.rows, edges_.columns, pattern_.height);
    canvas_.fill({pattern_.left, pattern_.top, width, height}, kEmpty, 1);
    const std::int64_t across = std::min<std::int64_t>(edges_.columns, width);
    const std::int64_t down = std::min<std::int64_t>(edges_.rows, height);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(across * down));
    const auto row = edges_.row.span<std::int64_t>(), column = edges_.column.span<std::int64_t>();
    for (std::size_t e = 0; e < row.size(); ++e) {
      const std::int64_t y = row[e] * down / edges_.rows;
      const std::int64_t x = column[e] * across / edges_.columns;
      ++counts[static_cast<std::size_t>(y * across + x)];
    }
    const std::int64_t most = *std::ranges::max_element(counts);
    for (std::size_t cell = 0; cell < counts.size(); ++cell) {
      if (counts[cell] == 0) continue;
      const auto x = static_cast<std::int64_t>(cell) % across;
      const auto y = static_cast<std::int64_t>(cell) / across;
      const int left = static_cast<int>(x * width / across);
      const int right = static_cast<int>((x + 1) * width / across);
      const int top = static_cast<int>(y * height / down);
      const int bottom = static_cast<int>((y + 1) * height / down);
      // From the third of the scale on, so that one entry stands out from none.
      const double part =
          most == 1 ? 1 : 1.0 / 3 + 2.0 / 3 * std::log(counts[cell]) / std::log(most);
      canvas_.fill({pattern_.left + left, pattern_.top + top, right - left, bottom - top},
                   scale_colour(ColourBy::intensity, part), 1);
    }
  }

  void draw_bars() {
    canvas_.text(bars_.left, bars_.top, "rows by their entries", kPictureDim, font_);
    std::int64_t most = 1;
    int names = 0, numbers = 0;
    for (const LengthClass& one : classes_) {
      most = std::max(most, one.rows);
      names = std::max(names, font_.width(range_of(one)));
      numbers = std::max(numbers, font_.width(with_commas(one.rows)));
    }
    const int gap = 5 * unit_, first = bars_.top + 16 * unit_;
    const int room = std::max(1, bars_.width - names - numbers - 2 * gap);
    const auto lines = std::max<int>(1, static_cast<int>(classes_.size()));
    const int line = std::clamp((bars_.top + bars_.height - first) / lines, 1, 14 * unit_);
    const int thick = std::max(1, std::min(line - 1, 7 * unit_));
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const int top = first + static_cast<int>(i) * line;
      const std::int64_t rows = classes_[i].rows;
      const int length = static_cast<int>(std::ceil(
          room * (static_cast<double>(rows) / static_cast<double>(most))));   // none for none
      const int left = bars_.left + names + gap;
      canvas_.fill({left, top, length, thick}, scale_colour(ColourBy::intensity, 0.6), 1);
      if (line < 8 * unit_) continue;   // too many for their names
      canvas_.text(bars_.left, top, range_of(classes_[i]), kPictureText, font_);
      canvas_.text(left + length + gap, top, with_commas(rows), kPictureDim, font_);
    }
  }

  const EdgesInput& edges_;
  const std::vector<LengthClass>& classes_;
  const PictureOptions& options_;
  Canvas canvas_;
  int unit_;   // pixels; text is 10 of it an em, 7 a capital
  Font font_;
  Panel pattern_;
  Panel bars_;
};

}   // namespace

std::vector<LengthClass> length_classes(const std::vector<std::int64_t>& lengths) {
  std::vector<LengthClass> classes;
  for (const std::int64_t length : lengths) {
    const auto number =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
    while (classes.size() <= number) {
      const std::int64_t end = std::int64_t{1} << classes.size();   // past the last of it
      classes.push_back({.from = end / 2, .to = end - 1});
    }
    ++classes[number].rows;
  }
  return classes;
}

std::string range_of(const LengthClass& one) {
  if (one.from == one.to) return with_commas(one.from);
  return with_commas(one.from) + "-" + with_commas(one.to);
}

Image render_pattern(const EdgesInput& edges, const std::vector<LengthClass>& classes,
                     const PictureOptions& options) {
  check_picture_size(options);
  return PatternPicture(edges, classes, options).draw();
}

}   // namespace pumice::cli
