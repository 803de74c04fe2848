// first, mean, max and sum over the points of a voxel, always in point order.
#include "points/cpu/reduce.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include <pumice/core/parallel.hpp>

namespace pumice::detail {
namespace {

constexpr std::int64_t kVoxelGrain = 4096;
constexpr std::int64_t kLanes = 4;   // channels a step: x y z intensity, one AVX2 vector of float64

/// Where the features of a point of the batch are.
class PointRows {
 public:
  PointRows(std::span<const FeaturedCloud> clouds, const std::int64_t* cloud_begin)
      : clouds_(clouds), begin_(cloud_begin, clouds.size() + 1) {
    if (clouds_.size() == 1) only_ = clouds_[0].features.data<float>();
    channels_ = clouds_[0].features.extent(1);
  }
  const float* operator[](std::int64_t point) const {
    if (only_ != nullptr) return only_ + point * channels_;
    const auto after = std::upper_bound(begin_.begin(), begin_.end(), point);
    const auto cloud = static_cast<std::size_t>(after - begin_.begin()) - 1;
    return clouds_[cloud].features.data<float>() + (point - begin_[cloud]) * channels_;
  }

 private:
  std::span<const FeaturedCloud> clouds_;
  std::span<const std::int64_t> begin_;
  const float* only_ = nullptr;
  std::int64_t channels_ = 0;
};

/// A NaN wins, so that it is not lost.
float larger(float best, float value) {
  return value > best || std::isnan(value) ? value : best;
}

/// Calls `body(first channel, width)` for steps of kLanes channels and a shorter last one; a full
/// width is a constant to the compiler.
template <class Body> void for_lanes(std::int64_t channels, Body&& body) {
  std::int64_t first = 0;
  for (; first + kLanes <= channels; first += kLanes) {
    body(first, std::integral_constant<std::int64_t, kLanes>{});
  }
  if (first < channels) body(first, channels - first);
}

void copy_row(const float* row, float* out, std::int64_t channels) {
  for_lanes(channels, [&](std::int64_t first, auto width) {
    for (std::int64_t c = 0; c < width; ++c)
      out[first + c] = row[first + c];
  });
}

void reduce_max(const PointRows& rows, std::span<const std::int64_t> members, float* out,
                std::int64_t channels) {
  copy_row(rows[members[0]], out, channels);
  for (const std::int64_t point : members.subspan(1)) {
    const float* row = rows[point];
    for (std::int64_t c = 0; c < channels; ++c)
      out[c] = larger(out[c], row[c]);
  }
}

/// Sum over members, divided by `divisor`.
void reduce_sum(const PointRows& rows, std::span<const std::int64_t> members, double divisor,
                float* out, std::int64_t channels) {
  for_lanes(channels, [&](std::int64_t first, auto width) {
    std::array<double, kLanes> sum{};
    for (const std::int64_t point : members) {
      const float* row = rows[point] + first;
      for (std::int64_t c = 0; c < width; ++c)
        sum[static_cast<std::size_t>(c)] += row[c];
    }
    for (std::int64_t c = 0; c < width; ++c) {
      out[first + c] = static_cast<float>(sum[static_cast<std::size_t>(c)] / divisor);
    }
  });
}

}   // namespace

void reduce_features(std::span<const FeaturedCloud> clouds, Reduction reduction, Voxels& voxels) {
  if (voxels.size() == 0) return;
  const PointRows rows(clouds, voxels.cloud_begin.data<std::int64_t>());
  const std::int64_t channels = voxels.features.extent(1);
  const auto begin = voxels.voxel_begin.span<std::int64_t>();
  const auto points = std::as_const(voxels.voxel_points).span<std::int64_t>();
  float* features = voxels.features.data<float>();
  parallel_for(voxels.size(), kVoxelGrain, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t voxel = from; voxel < to; ++voxel) {
      const auto at = static_cast<std::size_t>(voxel);
      const auto members = points.subspan(static_cast<std::size_t>(begin[at]),
                                          static_cast<std::size_t>(begin[at + 1] - begin[at]));
      float* out = features + voxel * channels;
      if (reduction == Reduction::first || members.size() == 1) {
        copy_row(rows[members[0]], out, channels);
      } else if (reduction == Reduction::max) {
        reduce_max(rows, members, out, channels);
      } else {
        const double count = static_cast<double>(members.size());
        reduce_sum(rows, members, reduction == Reduction::mean ? count : 1.0, out, channels);
      }
    }
  });
}

}   // namespace pumice::detail
