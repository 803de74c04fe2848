// Discs, lines, text and depth shading on a float canvas.
#include "picture_canvas.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pumice::cli {

Canvas::Canvas(int width, int height, Colour background)
    : width_(width),
      height_(height),
      colours_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), background),
      depths_(colours_.size(), std::numeric_limits<float>::infinity()) {}

void Canvas::blend(int x, int y, Colour colour, float opacity) {
  Colour& below = colours_[at(x, y)];
  below = mix(below, colour, opacity);
}

void Canvas::disc(const Panel& clip, double x, double y, double radius, Colour colour,
                  float depth) {
  const double reach = radius + 0.5;
  if (!(x > clip.left - reach && x < clip.left + clip.width + reach && y > clip.top - reach &&
        y < clip.top + clip.height + reach)) {
    return;
  }
  const int left = std::max(clip.left, static_cast<int>(std::floor(x - reach)));
  const int right = std::min(clip.left + clip.width - 1, static_cast<int>(std::floor(x + reach)));
  const int top = std::max(clip.top, static_cast<int>(std::floor(y - reach)));
  const int bottom = std::min(clip.top + clip.height - 1, static_cast<int>(std::floor(y + reach)));
  for (int py = top; py <= bottom; ++py) {
    for (int px = left; px <= right; ++px) {
      const double dx = px + 0.5 - x, dy = py + 0.5 - y;
      const double cover = reach - std::sqrt(dx * dx + dy * dy);
      if (cover <= 0) continue;
      const auto opacity = static_cast<float>(std::min(cover, 1.0));
      blend(px, py, colour, opacity);
      if (opacity > 0.35f) depths_[at(px, py)] = std::min(depths_[at(px, py)], depth);
    }
  }
}

void Canvas::line(const Panel& clip, double x0, double y0, double x1, double y1, Colour colour,
                  float opacity) {
  const double length = std::max(std::abs(x1 - x0), std::abs(y1 - y0));
  if (!(length < 4.0 * (width_ + height_))) return;   // a segment that runs past the camera
  const int steps = std::max(1, static_cast<int>(std::ceil(length)));
  const bool flat = std::abs(x1 - x0) >= std::abs(y1 - y0);
  for (int step = 0; step < steps; ++step) {
    // Two pixels a step across the line, each by its share: no stairs.
    const double x = x0 + (x1 - x0) * step / steps;
    const double y = y0 + (y1 - y0) * step / steps;
    const double across = flat ? y : x;
    const auto low = static_cast<int>(std::floor(across));
    const auto along = static_cast<int>(std::floor(flat ? x : y));
    for (const int side : {0, 1}) {
      const int px = flat ? along : low + side;
      const int py = flat ? low + side : along;
      if (px < clip.left || px >= clip.left + clip.width) continue;
      if (py < clip.top || py >= clip.top + clip.height) continue;
      const double share = side == 1 ? across - low : 1 - (across - low);
      blend(px, py, colour, opacity * static_cast<float>(share));
    }
  }
}

void Canvas::fill(const Panel& panel, Colour colour, float opacity) {
  const int right = std::min(panel.left + panel.width, width_);
  const int bottom = std::min(panel.top + panel.height, height_);
  for (int y = std::max(panel.top, 0); y < bottom; ++y) {
    for (int x = std::max(panel.left, 0); x < right; ++x)
      blend(x, y, colour, opacity);
  }
}

void Canvas::text(int x, int y, std::string_view line, Colour colour, const Font& font) {
  const int baseline = y + font.capital_height();
  font.set(line, [&](int pen, const Glyph& glyph) {
    const int left = x + pen + glyph.left;
    const int top = baseline + glyph.top;
    for (int gy = std::max(0, -top); gy < std::min(glyph.height, height_ - top); ++gy) {
      for (int gx = std::max(0, -left); gx < std::min(glyph.width, width_ - left); ++gx) {
        const auto cover =
            glyph.cover[static_cast<std::size_t>(gy) * static_cast<std::size_t>(glyph.width) +
                        static_cast<std::size_t>(gx)];
        if (cover > 0) blend(left + gx, top + gy, colour, static_cast<float>(cover) / 255.0f);
      }
    }
  });
}

void Canvas::shade_by_depth(const Panel& panel, float strength) {
  constexpr int kNeighbours[8][2] = {{1, 0}, {-1, 0}, {0, 1},  {0, -1},
                                     {2, 2}, {2, -2}, {-2, 2}, {-2, -2}};
  for (int y = panel.top; y < panel.top + panel.height; ++y) {
    for (int x = panel.left; x < panel.left + panel.width; ++x) {
      const float depth = depths_[at(x, y)];
      if (!std::isfinite(depth)) continue;
      float behind = 0;
      for (const auto& step : kNeighbours) {
        const int nx = x + step[0], ny = y + step[1];
        if (nx < panel.left || nx >= panel.left + panel.width) continue;
        if (ny < panel.top || ny >= panel.top + panel.height) continue;
        const float neighbour = depths_[at(nx, ny)];
        // The logarithm asks for nearer by a share, so that far things get edges too.
        if (neighbour < depth) behind += std::min(std::log(depth / neighbour), 0.25f);
      }
      Colour& colour = colours_[at(x, y)];
      const float light = std::exp(-strength * behind);
      colour = {colour.r * light, colour.g * light, colour.b * light};
    }
  }
}

Image Canvas::image() const {
  Image image{width_, height_, {}};
  image.pixels.reserve(colours_.size() * 3);
  for (const Colour& colour : colours_) {
    for (const float channel : {colour.r, colour.g, colour.b}) {
      image.pixels.push_back(
          static_cast<std::uint8_t>(std::clamp(channel, 0.0f, 1.0f) * 255.0f + 0.5f));
    }
  }
  return image;
}

}   // namespace pumice::cli
