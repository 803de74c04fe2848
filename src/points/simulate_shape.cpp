// Ray against prism, cylinder and ellipsoid, and what the surface there does to the light.
#include "points/simulate_shape.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <pumice/core/error.hpp>

namespace pumice::simulation {
namespace {

/// The stretch of a ray inside a convex shape, and the outward normal where it enters.
struct Passage {
  double enter;
  double leave;
  Vec3 normal;   // local
};

constexpr double kFar = 1e30;

/// Cuts the passage with a half-space: `distance` is how far the ray's origin lies outside of it,
/// `approach` how fast it gets there.
bool clip(double distance, double approach, Vec3 normal, Passage& passage) {
  if (approach == 0) return distance <= 0;
  const double t = distance / approach;
  if (approach > 0) {
    if (t > passage.enter) {
      passage.enter = t;
      passage.normal = normal;
    }
  } else {
    passage.leave = std::min(passage.leave, t);
  }
  return passage.enter < passage.leave;
}

/// Solves |o + t d|² = 1 for vectors already scaled by the semi-axes.
bool clip_quadric(double a, double b, double c, Passage& passage) {
  if (a <= 0) return c <= 0;
  const double under_root = b * b - a * c;
  if (under_root <= 0) return false;
  const double root = std::sqrt(under_root);
  passage.leave = std::min(passage.leave, (-b + root) / a);
  const double enter = (-b - root) / a;
  if (enter > passage.enter) {
    passage.enter = enter;
    passage.normal = {};   // the caller knows its direction
  }
  return passage.enter < passage.leave;
}

Vec3 normalised(Vec3 v) {
  return v * (1.0 / std::sqrt(dot(v, v)));
}

bool pass(const Shape& shape, const Ray& ray, Passage& passage) {
  const Vec3 o = ray.origin;
  const Vec3 d = ray.direction;
  const Vec3 h = shape.half;
  switch (shape.form) {
    case Form::prism:
      for (int e = 0; e < shape.edge_count; ++e) {
        const auto& edge = shape.edges[static_cast<std::size_t>(e)];
        const double distance = o.x * edge.normal.x + o.z * edge.normal.y - edge.offset;
        const double approach = -(d.x * edge.normal.x + d.z * edge.normal.y);
        if (!clip(distance, approach, {edge.normal.x, 0, edge.normal.y}, passage)) return false;
      }
      return clip(o.y - h.y, -d.y, {0, 1, 0}, passage) &&
             clip(-o.y - h.y, d.y, {0, -1, 0}, passage);
    case Form::cylinder: {
      if (!clip(o.z - h.z, -d.z, {0, 0, 1}, passage)) return false;
      if (!clip(-o.z - h.z, d.z, {0, 0, -1}, passage)) return false;
      const double before = passage.enter;
      if (!clip_quadric(d.x * d.x + d.y * d.y, o.x * d.x + o.y * d.y,
                        o.x * o.x + o.y * o.y - h.x * h.x, passage)) {
        return false;
      }
      if (passage.enter > before) {
        const Vec3 p = ray.at(passage.enter);
        passage.normal = normalised({p.x, p.y, 0});
      }
      return true;
    }
    case Form::ellipsoid: {
      const Vec3 so{o.x / h.x, o.y / h.y, o.z / h.z};
      const Vec3 sd{d.x / h.x, d.y / h.y, d.z / h.z};
      if (!clip_quadric(dot(sd, sd), dot(so, sd), dot(so, so) - 1, passage)) return false;
      const Vec3 p = ray.at(passage.enter);
      passage.normal = normalised({p.x / (h.x * h.x), p.y / (h.y * h.y), p.z / (h.z * h.z)});
      return true;
    }
  }
  return false;
}

/// Woodcock tracking: tries a leaf after each exponential step and takes it with the probability
/// that the foliage there is dense, which comes in clumps of 0.4 m. Negative: none met.
double meet_leaf(const Shape& shape, const Ray& local, const Passage& passage, Random& random) {
  double t = std::max(passage.enter, 0.0);
  const auto seed = static_cast<std::uint64_t>(std::llround(shape.half.x * 4096)) + 1;
  while (true) {
    t -= std::log(1.0 - random.uniform()) / static_cast<double>(shape.leaves_per_m);
    if (t >= passage.leave) return -1;
    const double clump = lattice_noise(local.at(t) * 2.5, seed);
    const double dense = std::clamp(3.0 * clump - 0.9, 0.0, 1.0);
    if (random.uniform() < dense) return t;
  }
}

/// Windows of 2/5 of the pitch, 1.3 m high, their sill 0.9 m above each storey of 2.9 m, set back
/// 0.14 m. A ray that enters one meets the pane, or the side of the opening on its way there.
void enter_window(const Shape& shape, const Ray& local, const Passage& passage, Random& random,
                  Hit& hit) {
  constexpr double kStorey = 2.9, kSill = 0.9, kHeight = 1.3, kSetBack = 0.14;
  const Vec3 n = passage.normal;
  if (std::abs(n.z) > 0.5) return;   // the roof has none
  const Vec3 p = local.at(passage.enter);
  const bool long_side = n.y != 0;
  const double pitch = static_cast<double>(shape.window_pitch);
  const double along = (long_side ? p.x : p.y) / pitch;
  const double across = (along - std::floor(along) - 0.5) * pitch;
  const double above = p.z - std::floor(p.z / kStorey) * kStorey - kSill - kHeight / 2;
  const double half_width = 0.2 * pitch;
  if (std::abs(across) > half_width || std::abs(above) > kHeight / 2) return;

  const double inwards = -dot(local.direction, n);
  const double sideways = long_side ? local.direction.x : local.direction.y;
  double path = kSetBack / std::max(inwards, 1e-3);
  const auto until = [&](double position, double speed, double limit) {
    return speed == 0 ? kFar : (speed > 0 ? limit - position : limit + position) / std::abs(speed);
  };
  const double to_side =
      std::min(until(across, sideways, half_width), until(above, local.direction.z, kHeight / 2));
  const bool pane = path < to_side;
  path = std::min(path, to_side);
  hit.t = passage.enter + path;
  hit.cos_incidence = pane ? inwards : 0.5;
  if (pane) {
    hit.lost = random.uniform() < 0.5;
    hit.reflectivity = 0.12;
  }
}

}   // namespace

bool intersect(const Ray& ray, const Shape& shape, Random random, Hit& hit) {
  const auto turn = [&](Vec3 v) {
    return Vec3{shape.cos_yaw * v.x + shape.sin_yaw * v.y,
                shape.cos_yaw * v.y - shape.sin_yaw * v.x, v.z};
  };
  const Ray local{turn(ray.origin + shape.centre * -1.0), turn(ray.direction)};
  Passage passage{-kFar, hit.t, {}};
  if (!pass(shape, local, passage)) return false;

  if (shape.leaves_per_m > 0) {
    const double t = meet_leaf(shape, local, passage, random);
    if (t < 0) return false;
    const double leaf = random.uniform();
    hit = {t, 0.3 + 0.7 * leaf, static_cast<double>(shape.reflectivity), shape.label, false};
    return true;
  }
  if (passage.enter <= 0) return false;
  const Vec3 entered = local.at(passage.enter);
  if (shape.finish == Finish::pickets) {   // slats 0.09 m wide, 0.13 m apart
    const double along = entered.x / 0.13;
    if (along - std::floor(along) > 0.7) return false;
  }
  hit = {passage.enter, -dot(local.direction, passage.normal),
         static_cast<double>(shape.reflectivity), shape.label, false};
  switch (shape.finish) {
    case Finish::matt:
    case Finish::pickets: break;
    case Finish::facade: enter_window(shape, local, passage, random, hit); break;
    case Finish::paint: hit.lost = random.uniform() > 0.55 + 0.9 * hit.cos_incidence; break;
    case Finish::glass: hit.lost = random.uniform() < 0.7; break;
  }
  return true;
}

double lattice_noise(Vec3 point, std::uint64_t seed) {
  const double fx = std::floor(point.x), fy = std::floor(point.y), fz = std::floor(point.z);
  const auto corner = [&](double i, double j, double k) {
    const auto cell = static_cast<std::uint64_t>(static_cast<std::int64_t>(fx + i)) * 0x8da6b343u ^
                      static_cast<std::uint64_t>(static_cast<std::int64_t>(fy + j)) * 0xd8163841u ^
                      static_cast<std::uint64_t>(static_cast<std::int64_t>(fz + k)) * 0xcb1ab31fu;
    return static_cast<double>(mix_bits(cell ^ (seed << 40)) >> 11) * 0x1p-53;
  };
  const auto ease = [](double s) { return s * s * (3 - 2 * s); };
  const double u = ease(point.x - fx), v = ease(point.y - fy), w = ease(point.z - fz);
  const auto mix = [](double a, double b, double s) { return a + (b - a) * s; };
  const auto layer = [&](double k) {
    return mix(mix(corner(0, 0, k), corner(1, 0, k), u), mix(corner(0, 1, k), corner(1, 1, k), u),
               v);
  };
  return mix(layer(0), layer(1), w);
}

Shape make_prism(Vec3 origin, double yaw, std::initializer_list<Vec2> outline, double half_width) {
  PUMICE_ENSURES(outline.size() >= 3 && outline.size() <= Shape::kMaxEdges, outline.size(),
                 " corners");
  Shape shape;
  shape.form = Form::prism;
  shape.centre = origin;
  shape.cos_yaw = std::cos(yaw);
  shape.sin_yaw = std::sin(yaw);
  shape.half = {0, half_width, 0};
  shape.z_low = kFar;
  shape.z_high = -kFar;
  double reach = 0;
  for (const Vec2* corner = outline.begin(); corner != outline.end(); ++corner) {
    const Vec2 next = corner + 1 == outline.end() ? *outline.begin() : *(corner + 1);
    const Vec2 step{next.x - corner->x, next.y - corner->y};
    const double length = std::sqrt(step.x * step.x + step.y * step.y);
    const Vec2 normal{step.y / length, -step.x / length};
    shape.edges[shape.edge_count++] = {normal, corner->x * normal.x + corner->y * normal.y};
    reach = std::max(reach, std::abs(corner->x));
    shape.half.x = reach;
    shape.z_low = std::min(shape.z_low, origin.z + corner->y);
    shape.z_high = std::max(shape.z_high, origin.z + corner->y);
  }
  shape.radius = std::sqrt(reach * reach + half_width * half_width);
  return shape;
}

Shape make_box(Vec3 base, double yaw, Vec3 size) {
  const double x = size.x / 2;
  return make_prism(base, yaw, {{-x, 0}, {x, 0}, {x, size.z}, {-x, size.z}}, size.y / 2);
}

Shape make_cylinder(Vec3 base, double radius, double height) {
  Shape shape;
  shape.form = Form::cylinder;
  shape.centre = {base.x, base.y, base.z + height / 2};
  shape.half = {radius, radius, height / 2};
  shape.radius = radius;
  shape.z_low = base.z;
  shape.z_high = base.z + height;
  return shape;
}

Shape make_ellipsoid(Vec3 centre, double yaw, Vec3 semi_axes) {
  Shape shape;
  shape.form = Form::ellipsoid;
  shape.centre = centre;
  shape.cos_yaw = std::cos(yaw);
  shape.sin_yaw = std::sin(yaw);
  shape.half = semi_axes;
  shape.radius = std::max(semi_axes.x, semi_axes.y);
  shape.z_low = centre.z - semi_axes.z;
  shape.z_high = centre.z + semi_axes.z;
  return shape;
}

}   // namespace pumice::simulation
