// Finds what part of the world is worth looking at.
#include "picture_scope.hpp"

#include <algorithm>
#include <cmath>

namespace pumice::cli {
namespace {

/// 1, 2 or 5 times a power of ten, near `length`.
double round_length(double length) {
  const double power = std::pow(10.0, std::floor(std::log10(length)));
  const double lead = length / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

}   // namespace

std::vector<std::size_t> finite_points(const PointCloud& cloud) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(cloud.size()); ++i) {
    const float* p = cloud.positions.data<float>() + 3 * i;
    if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2])) rows.push_back(i);
  }
  return rows;
}

Point position(const PointCloud& cloud, std::size_t row) {
  const float* p = cloud.positions.data<float>() + 3 * row;
  return {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2])};
}

double take_quantile(std::vector<double>& values, double part) {
  const auto rank = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

Scope find_scope(const PointCloud& cloud, const std::vector<std::size_t>& rows) {
  Scope scope;
  if (rows.empty()) return scope;
  std::array<std::vector<double>, 3> axis;
  for (const std::size_t row : rows) {
    const Point p = position(cloud, row);
    for (std::size_t a = 0; a < 3; ++a)
      axis[a].push_back(p[a]);
  }
  for (std::size_t a = 0; a < 2; ++a) {
    const double low = take_quantile(axis[a], 0.02), high = take_quantile(axis[a], 0.98);
    const bool around_sensor = low < 0 && high > 0;
    scope.centre[a] = around_sensor ? 0 : (low + high) / 2;
  }
  scope.centre[2] = take_quantile(axis[2], 0.15);
  std::vector<double> distances;
  for (const std::size_t row : rows) {
    const Point p = position(cloud, row);
    distances.push_back(std::hypot(p[0] - scope.centre[0], p[1] - scope.centre[1]));
  }
  const double spread = take_quantile(distances, 0.93);
  if (spread < 1e-3) return scope;   // all in one place: what is around it
  scope.reach = 1.15 * spread;
  scope.ring = round_length(scope.reach / 3);
  return scope;
}

}   // namespace pumice::cli
