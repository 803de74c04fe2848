// Composes a picture: caption on top, perspective left, bird's-eye right, legend over both.
#include "picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "picture_canvas.hpp"
#include "picture_colours.hpp"
#include "picture_scope.hpp"

namespace pumice::cli {
namespace {

constexpr Colour kSensor{1.0f, 1.0f, 1.0f};

/// The point as it is shown: where on the canvas, how large, how far from the eye.
struct Spot {
  double x;
  double y;
  double radius;
  double depth;
  std::size_t point;
};

/// A camera above and behind the centre, looking ahead and down.
class Camera {
 public:
  Camera(const Scope& scope, const Panel& panel) : panel_(panel) {
    const double r = scope.reach;
    eye_ = {scope.centre[0] - 0.62 * r, scope.centre[1] - 0.16 * r, scope.centre[2] + 0.47 * r};
    const Point target{scope.centre[0] + 0.12 * r, scope.centre[1], scope.centre[2]};
    forward_ = unit({target[0] - eye_[0], target[1] - eye_[1], target[2] - eye_[2]});
    right_ = unit({forward_[1], -forward_[0], 0});
    up_ = {right_[1] * forward_[2], -right_[0] * forward_[2],
           right_[0] * forward_[1] - right_[1] * forward_[0]};
    focal_ = 0.84 * panel.width;
    nearest_ = 0.02 * r;
  }

  /// False behind the camera.
  bool project(const Point& p, double& x, double& y, double& depth) const {
    const Point d{p[0] - eye_[0], p[1] - eye_[1], p[2] - eye_[2]};
    depth = dot(d, forward_);
    if (depth < nearest_) return false;
    x = panel_.left + panel_.width / 2.0 + focal_ * dot(d, right_) / depth;
    y = panel_.top + panel_.height / 2.0 - focal_ * dot(d, up_) / depth;
    return true;
  }
  double focal() const { return focal_; }

 private:
  static double dot(const Point& a, const Point& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  }
  static Point unit(const Point& v) {
    const double length = std::sqrt(dot(v, v));
    return {v[0] / length, v[1] / length, v[2] / length};
  }

  Panel panel_;
  Point eye_{}, forward_{}, right_{}, up_{};
  double focal_ = 1;
  double nearest_ = 0;
};

class Picture {
 public:
  Picture(const PointCloud& cloud, std::span<const std::int32_t> classes,
          const PictureOptions& options)
      : cloud_(cloud),
        options_(options),
        rows_(finite_points(cloud)),
        scope_(find_scope(cloud, rows_)),
        paint_(colour_points(cloud, classes, options.by, options.styles)),
        canvas_(options.width, options.height, kPictureBackground),
        text_scale_(std::clamp(options.height / 450, 1, 8)),
        font_(10 * text_scale_) {
    const int top = 14 * text_scale_;
    const int split = options.width * 61 / 100;
    perspective_ = {0, top, split, options.height - top};
    birds_eye_ = {split + 2, top, options.width - split - 2, options.height - top};
  }

  Image draw() {
    draw_perspective();
    draw_birds_eye();
    canvas_.fill({birds_eye_.left - 2, perspective_.top, 2, perspective_.height}, kPictureLine,
                 0.6f);
    draw_caption();
    if (!paint_.classes.empty()) draw_classes();
    if (!paint_.quantity.empty() && !rows_.empty()) draw_scale();
    return canvas_.image();
  }

 private:
  void draw_perspective() {
    const Camera camera(scope_, perspective_);
    rings(perspective_, [&](double x, double y, double& px, double& py) {
      double depth = 0;
      return camera.project({x, y, scope_.centre[2]}, px, py, depth);
    });
    std::vector<Spot> spots;
    const double size = 0.0012 * scope_.reach;   // metres, half the width of a point
    for (const std::size_t row : rows_) {
      Spot spot{};
      spot.point = row;
      if (!camera.project(position(cloud_, row), spot.x, spot.y, spot.depth)) continue;
      const double unit = options_.height / 900.0;
      spot.radius = std::clamp(camera.focal() * size / spot.depth, 0.6 * unit, 3.2 * unit);
      spots.push_back(spot);
    }
    splat(perspective_, std::move(spots), 0.25f);
    canvas_.shade_by_depth(perspective_, 1.6f);
  }

  void draw_birds_eye() {
    // Ahead is up; the shorter side of the panel shows most of the reach.
    const double scale =
        0.5 * std::min(birds_eye_.width, birds_eye_.height) / (0.82 * scope_.reach);
    const double middle_x = birds_eye_.left + birds_eye_.width / 2.0;
    const double middle_y = birds_eye_.top + birds_eye_.height / 2.0;
    const auto project = [&](double x, double y, double& px, double& py) {
      px = middle_x - (y - scope_.centre[1]) * scale;
      py = middle_y - (x - scope_.centre[0]) * scale;
      return true;
    };
    rings(birds_eye_, project);
    std::vector<Spot> spots;
    const double above = 2 * scope_.reach;   // as from a height at which depths compare well
    for (const std::size_t row : rows_) {
      const Point p = position(cloud_, row);
      Spot spot{};
      spot.point = row;
      project(p[0], p[1], spot.x, spot.y);
      spot.depth = std::max(above - (p[2] - scope_.centre[2]), 0.05 * above);
      spot.radius = std::max(0.6 * options_.height / 900.0, 0.0012 * scope_.reach * scale);
      spots.push_back(spot);
    }
    splat(birds_eye_, std::move(spots), 0);
    canvas_.shade_by_depth(birds_eye_, 4);
    draw_sensor(middle_x, middle_y);
    label_rings(middle_x, middle_y, scale);
  }

  /// Farthest first, so that near points cover far ones; `fog` is how much the farthest fade.
  void splat(const Panel& panel, std::vector<Spot> spots, float fog) {
    std::ranges::stable_sort(spots, std::ranges::greater{}, &Spot::depth);
    for (const Spot& spot : spots) {
      const auto far = static_cast<float>(std::clamp(spot.depth / (3 * scope_.reach), 0.0, 1.0));
      const Colour colour = mix(paint_.colours[spot.point], kPictureBackground, fog * far);
      canvas_.disc(panel, spot.x, spot.y, spot.radius, colour, static_cast<float>(spot.depth));
    }
  }

  template <class Project> void rings(const Panel& panel, const Project& project) {
    constexpr int kSegments = 180;
    for (double radius = scope_.ring; radius <= 1.5 * scope_.reach; radius += scope_.ring) {
      for (int i = 0; i < kSegments; ++i) {
        const double from = 2 * std::numbers::pi * i / kSegments;
        const double to = 2 * std::numbers::pi * (i + 1) / kSegments;
        double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
        if (!project(scope_.centre[0] + radius * std::cos(from),
                     scope_.centre[1] + radius * std::sin(from), x0, y0) ||
            !project(scope_.centre[0] + radius * std::cos(to),
                     scope_.centre[1] + radius * std::sin(to), x1, y1)) {
          continue;
        }
        canvas_.line(panel, x0, y0, x1, y1, kPictureLine, 0.55f);
      }
    }
  }

  /// Over the points: each ring says how many metres it is away.
  void label_rings(double x, double y, double scale) {
    const double diagonal = std::numbers::sqrt2 / 2;
    for (double radius = scope_.ring; radius <= 1.5 * scope_.reach; radius += scope_.ring) {
      const std::string text = fmt::format("{:g} m", radius);
      const auto left = static_cast<int>(x + radius * scale * diagonal) + 3;
      const auto top = static_cast<int>(y + radius * scale * diagonal) + 3;
      const int right = left + font_.width(text);
      if (right > options_.width || top + 8 * text_scale_ > options_.height) break;
      plate(left, top, right - left, 7 * text_scale_, 0.55f);
      canvas_.text(left, top, text, kPictureDim, font_);
    }
  }

  void draw_sensor(double x, double y) {
    const double s = 5.0 * text_scale_;   // an arrow that points ahead
    const std::array<std::array<double, 2>, 4> corners{
        {{x, y - 1.3 * s}, {x + 0.8 * s, y + s}, {x, y + 0.5 * s}, {x - 0.8 * s, y + s}}};
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const auto& from = corners[i];
      const auto& to = corners[(i + 1) % corners.size()];
      canvas_.line(birds_eye_, from[0], from[1], to[0], to[1], kSensor, 1);
    }
  }

  void draw_caption() {
    const int margin = 4 * text_scale_;
    const std::string caption = font_.fitted(options_.caption, options_.width - 2 * margin);
    canvas_.text(margin, margin - text_scale_ / 2, caption, kPictureText, font_);
  }

  /// A dark plate under text, so that it reads over points.
  void plate(int left, int top, int width, int height, float opacity) {
    const int rim = 2 * text_scale_;
    canvas_.fill({left - rim, top - rim, width + 2 * rim, height + 2 * rim}, kPictureBackground,
                 opacity);
  }

  void draw_classes() {
    const int line = 12 * text_scale_;
    const auto room = static_cast<std::size_t>(std::max(1, (perspective_.height / 2) / line));
    const std::size_t shown = std::min(paint_.classes.size(), room);
    const int left = 6 * text_scale_;
    std::vector<std::string> names;
    int longest = 0;
    for (std::size_t i = 0; i < shown; ++i) {
      names.push_back(font_.fitted(paint_.classes[i].name, perspective_.width - 2 * left - line));
      longest = std::max(longest, font_.width(names.back()));
    }
    const int height = static_cast<int>(shown) * line;
    const int top = options_.height - height - 3 * text_scale_;
    plate(left, top, line + longest, height, 0.72f);
    for (std::size_t i = 0; i < shown; ++i) {
      const int y = top + static_cast<int>(i) * line;
      canvas_.fill({left, y, 7 * text_scale_, 7 * text_scale_}, paint_.classes[i].colour, 1);
      canvas_.text(left + line, y, names[i], kPictureText, font_);
    }
  }

  void draw_scale() {
    const int left = 6 * text_scale_;
    const int width = 110 * text_scale_;
    const int bar = 6 * text_scale_;
    const int top = options_.height - 30 * text_scale_;
    plate(left, top, width, 27 * text_scale_, 0.72f);
    canvas_.text(left, top, paint_.quantity, kPictureText, font_);
    for (int x = 0; x < width; ++x) {
      const Colour colour = scale_colour(options_.by, static_cast<double>(x) / (width - 1));
      canvas_.fill({left + x, top + 10 * text_scale_, 1, bar}, colour, 1);
    }
    const std::string high = fmt::format("{:.2f}", paint_.high);
    canvas_.text(left, top + 19 * text_scale_, fmt::format("{:.2f}", paint_.low), kPictureDim,
                 font_);
    canvas_.text(left + width - font_.width(high), top + 19 * text_scale_, high, kPictureDim,
                 font_);
  }

  const PointCloud& cloud_;
  const PictureOptions& options_;
  std::vector<std::size_t> rows_;
  Scope scope_;
  PointColours paint_;
  Canvas canvas_;
  int text_scale_;   // pixels; text is 10 of it an em, 7 a capital
  Font font_;
  Panel perspective_;
  Panel birds_eye_;
};

}   // namespace

void check_picture_size(const PictureOptions& options) {
  PUMICE_EXPECTS(options.width >= 320 && options.width <= 16384, "picture width = ", options.width,
                 ": ask for 320 to 16384 pixels");
  PUMICE_EXPECTS(options.height >= 240 && options.height <= 16384,
                 "picture height = ", options.height, ": ask for 240 to 16384 pixels");
}

Image render(const PointCloud& cloud, std::span<const std::int32_t> classes,
             const PictureOptions& options) {
  check_picture_size(options);
  return Picture(cloud, classes, options).draw();
}

}   // namespace pumice::cli
