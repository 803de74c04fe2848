// What part of the world a picture or a page of a scan shows.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <pumice/points/point_cloud.hpp>

namespace pumice::cli {

using Point = std::array<double, 3>;

/// A disc of `reach` metres around `centre`.
struct Scope {
  Point centre{};   // z is the ground
  double reach = 30;
  double ring = 10;   // metres between range rings
};

/// The rows of points that are finite.
std::vector<std::size_t> finite_points(const PointCloud& cloud);

Point position(const PointCloud& cloud, std::size_t row);

/// The value that `part` (0 to 1) of them lie below; reorders `values`, of which there are some.
double take_quantile(std::vector<double>& values, double part);

/// Scans are looked at from where the sensor was; other clouds from their middle.
Scope find_scope(const PointCloud& cloud, const std::vector<std::size_t>& rows);

}   // namespace pumice::cli
