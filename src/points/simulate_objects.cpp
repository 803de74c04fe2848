// The things of a street, each put together from shapes.
#include "points/simulate_objects.hpp"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "points/simulate_labels.hpp"

namespace pumice::simulation {
namespace {

/// A thing being put together in its own frame: x ahead, y left, z up, standing on z = 0.
class Assembly {
 public:
  Assembly(Shapes& shapes, const Placement& at, std::int32_t label)
      : shapes_(shapes), at_(at), label_(label), cos_(std::cos(at.yaw)), sin_(std::sin(at.yaw)) {}

  Vec3 place(Vec3 p) const {
    return at_.base + Vec3{cos_ * p.x - sin_ * p.y, sin_ * p.x + cos_ * p.y, p.z};
  }
  Shape& add(Shape shape, double reflectivity, Finish finish = Finish::matt) {
    shape.label = label_;
    shape.reflectivity = static_cast<float>(reflectivity);
    shape.finish = finish;
    shape.velocity = {at_.speed * cos_, at_.speed * sin_};
    shapes_.push_back(shape);
    return shapes_.back();
  }
  Shape& prism(std::initializer_list<Vec2> outline, double width, double reflectivity,
               Finish finish = Finish::matt) {
    return add(make_prism(at_.base, at_.yaw, outline, width / 2), reflectivity, finish);
  }
  Shape& box(Vec3 base, Vec3 size, double reflectivity, Finish finish = Finish::matt) {
    return add(make_box(place(base), at_.yaw, size), reflectivity, finish);
  }
  Shape& cylinder(Vec3 base, double radius, double height, double reflectivity) {
    return add(make_cylinder(place(base), radius, height), reflectivity);
  }
  Shape& ellipsoid(Vec3 centre, Vec3 semi_axes, double reflectivity) {
    return add(make_ellipsoid(place(centre), at_.yaw, semi_axes), reflectivity);
  }
  /// Octagonal wheels, an axle at each x.
  void wheels(std::initializer_list<double> axles, double radius, double width) {
    const double r = radius, s = 0.414 * radius;
    for (const double x : axles) {
      for (const int side : {-1, 1}) {
        Shape wheel = make_prism(
            place({x, side * (width / 2 - 0.12), r}), at_.yaw,
            {{-s, -r}, {s, -r}, {r, -s}, {r, s}, {s, r}, {-s, r}, {-r, s}, {-r, -s}}, 0.11);
        add(wheel, 0.08);
      }
    }
  }

 private:
  Shapes& shapes_;
  Placement at_;
  std::int32_t label_;
  double cos_;
  double sin_;
};

Shape& make_leafy(Shape& shape, double leaves_per_m) {
  shape.leaves_per_m = static_cast<float>(leaves_per_m);
  return shape;
}

}   // namespace

void add_car(Shapes& shapes, const Placement& at, Random& random) {
  Assembly car(shapes, at, at.speed != 0 ? kMovingCar : kCar);
  const double half = random.uniform(1.95, 2.35);   // of the length
  const double width = random.uniform(1.68, 1.86);
  const double roof = random.uniform(1.42, 1.72);
  const double waist = 0.55 * roof + 0.08;
  const double paint = 0.1 + 0.5 * random.uniform();
  car.wheels({-0.62 * half, 0.62 * half}, 0.31, width);
  car.prism({{-half, 0.28},
             {half, 0.28},
             {half + 0.06, 0.5},
             {half - 0.1, 0.72},
             {0.45 * half, waist},
             {-half + 0.12, waist + 0.04},
             {-half - 0.04, 0.6}},
            width, paint, Finish::paint);
  const bool estate = random.uniform() < 0.5;
  const double rear = estate ? -0.93 * half : -0.62 * half;
  car.prism({{estate ? -0.95 * half : -0.86 * half, waist},
             {0.52 * half, waist},
             {0.14 * half, roof - 0.05},
             {0.02 * half, roof},
             {rear + 0.25, roof},
             {rear, roof - 0.1}},
            width - 0.24, 0.2, Finish::glass);
  car.box({-0.24 * half, 0, roof - 0.02}, {0.7 * half, width - 0.34, 0.05}, paint, Finish::paint);
}

void add_lorry(Shapes& shapes, const Placement& at, Random& random) {
  Assembly lorry(shapes, at, at.speed != 0 ? kMovingTruck : kTruck);
  const double body = random.uniform(4.6, 6.6);
  const double height = random.uniform(3.0, 3.6);
  const double front = body / 2 + 0.9;
  lorry.wheels({-0.3 * body, front - 0.1}, 0.46, 2.3);
  lorry.box({-0.9, 0, 0.6}, {body + 1.6, 0.9, 0.3}, 0.1);
  lorry.box({-0.9, 0, 0.9}, {body, 2.45, height - 0.9}, 0.55);
  lorry.prism({{front - 1.0, 0.45},
               {front + 0.85, 0.45},
               {front + 0.85, 1.5},
               {front + 0.5, 2.6},
               {front - 1.0, 2.7}},
              2.25, 0.35, Finish::paint);
}

void add_bus(Shapes& shapes, const Placement& at, Random& random) {
  Assembly bus(shapes, at, at.speed != 0 ? kMovingBus : kBus);
  const double half = random.uniform(5.2, 6.1);
  bus.wheels({-0.55 * half, 0.6 * half}, 0.48, 2.5);
  bus.box({0, 0, 0.32}, {2 * half, 2.5, 1.0}, 0.45, Finish::paint);
  bus.box({0, 0, 1.32}, {2 * half - 0.08, 2.44, 1.15}, 0.2, Finish::glass);
  bus.box({0, 0, 2.47}, {2 * half, 2.5, 0.6}, 0.45, Finish::paint);
}

void add_bicycle(Shapes& shapes, const Placement& at) {
  Assembly bicycle(shapes, at, kBicycle);
  const double r = 0.34, s = 0.141;
  for (const double x : {-0.52, 0.52}) {
    const Vec3 hub = bicycle.place({x, 0, r});
    bicycle.add(
        make_prism(hub, at.yaw,
                   {{-s, -r}, {s, -r}, {r, -s}, {r, s}, {s, r}, {-s, r}, {-r, s}, {-r, -s}}, 0.02),
        0.15, Finish::pickets);
  }
  bicycle.box({0, 0, 0.5}, {0.9, 0.05, 0.12}, 0.25);
  bicycle.cylinder({-0.25, 0, 0.5}, 0.04, 0.45, 0.2);
  bicycle.box({0.45, 0, 0.95}, {0.08, 0.5, 0.06}, 0.2);
}

void add_person(Shapes& shapes, const Placement& at, Random& random) {
  Assembly person(shapes, at, at.speed != 0 ? kMovingPerson : kPerson);
  const double tall = random.uniform(1.55, 1.9);
  const double stride = at.speed != 0 ? random.uniform(0.1, 0.25) : 0.03;
  const double cloth = random.uniform(0.15, 0.6);
  person.cylinder({stride, 0.09, 0}, 0.08, 0.48 * tall, 0.2);
  person.cylinder({-stride, -0.09, 0}, 0.08, 0.48 * tall, 0.2);
  person.ellipsoid({0, 0, 0.65 * tall}, {0.15, 0.22, 0.21 * tall}, cloth);
  person.ellipsoid({stride, -0.25, 0.6 * tall}, {0.07, 0.06, 0.18 * tall}, cloth);
  person.ellipsoid({-stride, 0.25, 0.6 * tall}, {0.07, 0.06, 0.18 * tall}, cloth);
  person.ellipsoid({0, 0, 0.93 * tall}, {0.1, 0.09, 0.12}, 0.4);
}

void add_tree(Shapes& shapes, Vec3 base, double height, Random& random) {
  const Placement at{base, random.uniform(0, 3.1), 0};
  Assembly trunk(shapes, at, kTrunk);
  const double fork = height * random.uniform(0.26, 0.36);
  trunk.cylinder({0, 0, 0}, 0.05 + 0.018 * height, fork + 0.15 * height, 0.28);
  Assembly crown(shapes, at, kVegetation);
  const double wide = height * random.uniform(0.24, 0.32);
  make_leafy(
      crown.ellipsoid({0, 0, (fork + height) / 2}, {wide, 0.9 * wide, (height - fork) / 2}, 0.38),
      2.4);
  for (int lobe = 0; lobe < 2; ++lobe) {   // so that no two crowns look alike
    make_leafy(crown.ellipsoid({random.uniform(-0.6, 0.6) * wide, random.uniform(-0.6, 0.6) * wide,
                                fork + random.uniform(0.15, 0.5) * (height - fork)},
                               {0.6 * wide, 0.7 * wide, 0.22 * (height - fork)}, 0.36),
               2.8);
  }
}

void add_bush(Shapes& shapes, Vec3 base, Random& random) {
  Assembly bush(shapes, {base, random.uniform(0, 3.1), 0}, kVegetation);
  const double size = random.uniform(0.5, 1.3);
  make_leafy(bush.ellipsoid({0, 0, 0.6 * size}, {size, 0.8 * size, 0.75 * size}, 0.35), 5);
}

void add_hedge(Shapes& shapes, Vec3 base, double yaw, Vec3 size) {
  Assembly hedge(shapes, {base, yaw, 0}, kVegetation);
  make_leafy(hedge.box({0, 0, 0}, size, 0.33), 10);
}

void add_fence(Shapes& shapes, Vec3 base, double yaw, double length, double height) {
  Assembly fence(shapes, {base, yaw, 0}, kFence);
  fence.box({0, 0, 0.08}, {length, 0.03, height - 0.08}, 0.35, Finish::pickets);
  fence.box({0, 0.04, 0.8 * height}, {length, 0.05, 0.08}, 0.35);
  for (double x = -length / 2; x <= length / 2; x += 2.5) {
    fence.box({x, 0.05, 0}, {0.1, 0.1, height + 0.1}, 0.35);
  }
}

void add_lamp(Shapes& shapes, Vec3 base, double yaw) {
  Assembly lamp(shapes, {base, yaw, 0}, kPole);
  lamp.cylinder({0, 0, 0}, 0.14, 1.1, 0.35);
  lamp.cylinder({0, 0, 0}, 0.08, 7.4, 0.35);
  lamp.box({0.9, 0, 7.3}, {1.8, 0.08, 0.08}, 0.35);
  lamp.box({1.8, 0, 7.2}, {0.7, 0.28, 0.14}, 0.4);
}

void add_sign(Shapes& shapes, Vec3 base, double yaw, Random& random) {
  const double bottom = random.uniform(1.9, 2.3);
  Assembly post(shapes, {base, yaw, 0}, kPole);
  post.cylinder({0, 0, 0}, 0.04, bottom + 0.7, 0.4);
  Assembly plate(shapes, {base, yaw, 0}, kTrafficSign);
  plate.box({0.06, 0, bottom}, {0.03, random.uniform(0.55, 0.8), random.uniform(0.55, 0.75)}, 0.98);
}

void add_bin(Shapes& shapes, Vec3 base, double yaw) {
  Assembly bin(shapes, {base, yaw, 0}, kOtherObject);
  bin.box({0, 0, 0.05}, {0.55, 0.55, 1.0}, 0.22);
  bin.box({0.04, 0, 1.05}, {0.66, 0.6, 0.08}, 0.22);
}

void add_house(Shapes& shapes, Vec3 base, double yaw, Vec3 size, Random& random) {
  Assembly house(shapes, {base, yaw, 0}, kBuilding);
  const double wall = random.uniform(0.3, 0.55);
  const double x = size.x / 2;   // founded 0.6 m deep, for ground that slopes
  Shape& walls =
      house.prism({{-x, -0.6}, {x, -0.6}, {x, size.z}, {-x, size.z}}, size.y, wall, Finish::facade);
  walls.window_pitch = static_cast<float>(random.uniform(2.5, 3.6));
  house.box({random.uniform(-0.3, 0.3) * size.x, 0, 0}, {1.3, size.y + 0.1, 2.15},
            0.2);   // door frame
  Assembly roof(shapes, {base + Vec3{0, 0, size.z}, yaw + 1.5707963267948966, 0}, kBuilding);
  const double eaves = size.y / 2 + 0.4;
  roof.prism({{-eaves, -0.1}, {eaves, -0.1}, {0, 0.42 * size.y}}, size.x + 0.3, 0.25);
}

}   // namespace pumice::simulation
