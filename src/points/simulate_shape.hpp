// The solids and clouds of leaves a street is built of, and where a laser ray meets them.
//
//   prism       a convex outline in local x-z, extruded along local y: boxes, gables, cars, wheels
//   cylinder    upright: poles, trunks, legs
//   ellipsoid   heads, torsos, tree crowns
//
// A shape with `leaves_per_m` > 0 is a cloud: the ray enters it and meets a leaf after a random
// path.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include <pumice/core/random.hpp>

namespace pumice::simulation {

struct Vec3 {
  double x = 0;
  double y = 0;
  double z = 0;
};
struct Vec2 {
  double x = 0;
  double y = 0;
};

inline Vec3 operator+(Vec3 a, Vec3 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline Vec3 operator*(Vec3 a, double s) {
  return {a.x * s, a.y * s, a.z * s};
}
inline double dot(Vec3 a, Vec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

struct Ray {
  Vec3 origin;
  Vec3 direction;   // of length 1
  Vec3 at(double t) const { return origin + direction * t; }
};

enum class Form : std::uint8_t { prism, cylinder, ellipsoid };

/// What a ray finds where it meets the outside of a shape.
enum class Finish : std::uint8_t {
  matt,
  facade,    // rows of windows, set back from the wall, half of which send nothing back
  pickets,   // slats with gaps that a ray passes
  paint,     // car bodies: little comes back at grazing angles
  glass,     // most of the light is gone for good
};

struct Shape {
  static constexpr int kMaxEdges = 8;
  struct Edge {   // of a prism's outline: x * normal.x + z * normal.y <= offset inside
    Vec2 normal;
    double offset;
  };

  Form form = Form::prism;
  Finish finish = Finish::matt;
  std::uint8_t edge_count = 0;
  std::int32_t label = 0;
  float reflectivity = 0.3f;
  float leaves_per_m = 0;   // mean leaves met per metre in the densest places; 0: a solid
  float window_pitch = 3;   // metres between the windows of a facade
  Vec3 centre;              // of a prism: the local origin of its outline
  double cos_yaw = 1;
  double sin_yaw = 0;
  Vec3 half;   // ellipsoid: semi-axes; cylinder: radius in x, half height in z; prism: half width
               // in y
  std::array<Edge, kMaxEdges> edges{};
  Vec2 velocity;       // m/s
  double radius = 0;   // of the upright cylinder around `centre` that holds the shape
  double z_low = 0;
  double z_high = 0;
};

/// Outline counter-clockwise in (x, z), convex, at most kMaxEdges corners.
Shape make_prism(Vec3 origin, double yaw, std::initializer_list<Vec2> outline, double half_width);
/// A box standing on `base`, `size` long (x), wide (y) and high (z).
Shape make_box(Vec3 base, double yaw, Vec3 size);
Shape make_cylinder(Vec3 base, double radius, double height);
Shape make_ellipsoid(Vec3 centre, double yaw, Vec3 semi_axes);

struct Hit {
  double t = 0;
  double cos_incidence = 0;
  double reflectivity = 0;
  std::int32_t label = 0;
  bool lost = false;   // the light met something and none of it came back
};

/// Where `ray` meets `shape` before `hit.t`; then fills `hit` and returns true. `random` is the
/// stream of this ray and shape.
bool intersect(const Ray& ray, const Shape& shape, Random random, Hit& hit);

/// Smooth noise in [0, 1] over space, one independent value per cell of 1.
double lattice_noise(Vec3 point, std::uint64_t seed);

}   // namespace pumice::simulation
