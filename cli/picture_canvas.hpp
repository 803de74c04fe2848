// A picture being drawn: float colours, so that thousands of soft points can be laid over each
// other, and a depth a pixel for shading.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "picture.hpp"
#include "picture_font.hpp"

namespace pumice::cli {

inline Colour mix(Colour a, Colour b, float part) {
  return {a.r + (b.r - a.r) * part, a.g + (b.g - a.g) * part, a.b + (b.b - a.b) * part};
}

/// A rectangle of pixels; everything drawn through a canvas stays inside of one.
struct Panel {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

class Canvas {
 public:
  Canvas(int width, int height, Colour background);

  int width() const { return width_; }
  int height() const { return height_; }

  /// A disc with a soft rim around (x, y); `depth` is kept where it covers most of a pixel.
  void disc(const Panel& clip, double x, double y, double radius, Colour colour, float depth);
  void line(const Panel& clip, double x0, double y0, double x1, double y1, Colour colour,
            float opacity);
  void fill(const Panel& panel, Colour colour, float opacity);
  /// One line; (x, y) is the left end of the top of its capitals.
  void text(int x, int y, std::string_view line, Colour colour, const Font& font);

  /// Darkens pixels whose neighbours are nearer (eye-dome lighting): edges of things stand out.
  void shade_by_depth(const Panel& panel, float strength);
  Image image() const;

 private:
  void blend(int x, int y, Colour colour, float opacity);
  std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }

  int width_;
  int height_;
  std::vector<Colour> colours_;
  std::vector<float> depths_;   // of the nearest point; infinite where there is none
};

}   // namespace pumice::cli
