// Looks up the cells around points, and sums their rows.
#include "ops/cpu/interpolation.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/row_groups.hpp"
#include "ops/cpu/row_numbers.hpp"
#include "ops/cpu/widened.hpp"

namespace pumice::cpu {
namespace {

constexpr std::int64_t kPointGrain = 1024;   // a look-up costs some 50 ns: 400 µs a task in 3-D

template <class P> bool good_point(const P* point, int dimension, std::int32_t batch_size) {
  bool good =
      point[0] >= 0 && point[0] < static_cast<P>(batch_size) && point[0] == std::floor(point[0]);
  for (int axis = 1; axis <= dimension; ++axis)
    good = good && std::isfinite(point[axis]);
  return good;
}

template <class P>
[[noreturn]] void refuse(const P* point, std::int64_t index, int dimension,
                         std::int32_t batch_size) {
  for (int axis = 1; axis <= dimension; ++axis) {
    PUMICE_EXPECTS(std::isfinite(point[axis]), "interpolation_map: point ", index,
                   " has coordinate ", point[axis], " on axis ", axis - 1,
                   "; drop points that are not finite first");
  }
  detail::raise_user("interpolation_map: point ", index, " has batch index ", point[0],
                     "; it must be a whole number from 0 to ", batch_size - 1);
}

/// Row of cell (batch, cell…), or -1; a cell beyond the layout cannot be occupied.
std::int32_t row_at(const BlockIndexRef& index, std::int64_t batch,
                    const std::array<std::int64_t, kMaxDimension>& cell) {
  for (int axis = 0; axis < index.layout.dimension; ++axis) {
    if (!in_layout(index.layout, axis, cell[static_cast<std::size_t>(axis)])) return -1;
  }
  return index.find_row(encode_key(index.layout, batch, cell.data()));
}

/// A cell number that cannot overflow when 1 or a bias is added, and is outside every layout when
/// the position is.
template <class P> std::int64_t cell_of(P position) {
  constexpr P kFar = static_cast<P>(std::int64_t{1} << 40);
  return static_cast<std::int64_t>(std::clamp(std::floor(position), -kFar, kFar));
}

template <class P>
void find_typed(const CoordinateSet& set, const P* points, std::int64_t count,
                const InterpolationOptions& options, std::int32_t* rows, P* weights) {
  const int dimension = set.dimension();
  const bool linear = options.mode == Interpolation::linear;
  const std::int64_t corners = linear ? std::int64_t{1} << dimension : 1;
  std::atomic<std::int64_t> bad{count};
  parallel_for(count, kPointGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const P* const point = points + p * (dimension + 1);
      if (!good_point(point, dimension, set.batch_size())) {
        std::int64_t seen = bad.load();
        while (p < seen && !bad.compare_exchange_weak(seen, p)) {
        }
        return;
      }
      std::array<std::int64_t, kMaxDimension> base{};
      std::array<P, kMaxDimension> part{};
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
        const P position = point[axis + 1];
        base[axis] = cell_of(linear ? position : position + P{0.5});
        part[axis] = linear ? position - std::floor(position) : P{0};
      }
      P present = 0;
      for (std::int64_t corner = 0; corner < corners; ++corner) {
        auto cell = base;
        P weight = 1;
        for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
          const bool upper = linear && ((corner >> axis) & 1) != 0;
          if (upper) ++cell[axis];
          weight *= upper ? part[axis] : P{1} - part[axis];
        }
        const std::int32_t row =
            weight == 0 ? -1 : row_at(set.index(), static_cast<std::int64_t>(point[0]), cell);
        rows[p * corners + corner] = row;
        weights[p * corners + corner] = row < 0 ? P{0} : weight;
        present += weights[p * corners + corner];
      }
      if (!options.renormalize || present == 0) continue;
      for (std::int64_t corner = 0; corner < corners; ++corner) {
        weights[p * corners + corner] /= present;
      }
    }
  });
  const std::int64_t at = bad.load();
  if (at < count) refuse(points + at * (dimension + 1), at, dimension, set.batch_size());
}

/// Calls body(weights as P*) for the weights' type.
template <class Body> void dispatch_weights(ConstTensorView weights, const Body& body) {
  if (weights.dtype() == DType::f64)
    body(weights.data<double>());
  else
    body(weights.data<float>());
}

}   // namespace

void find_corners(const CoordinateSet& set, ConstTensorView points,
                  const InterpolationOptions& options, InterpolationMap& map) {
  const auto find = [&]<class P>(P) {
    find_typed(set, points.data<P>(), points.rows(), options, map.rows.data<std::int32_t>(),
               map.weights.data<P>());
  };
  if (points.dtype() == DType::f64)
    find(double{});
  else
    find(float{});
}

void interpolate(ConstTensorView features, const InterpolationMapView& map, TensorView output) {
  const std::int64_t channels = features.extent(1);
  const std::int64_t corners = map.rows.extent(1);
  const auto* const rows = map.rows.data<std::int32_t>();
  const auto in_rows = static_cast<std::uint64_t>(features.rows());
  BadRows bad;
  dispatch_floating(features.dtype(), "interpolate", [&]<class T>(T) {
    using C = compute_t<T>;
    const T* const in = features.data<T>();
    T* const out = output.data<T>();
    dispatch_weights(map.weights, [&](const auto* weights) {
      parallel_for(
          output.rows(), row_grain(channels * corners), [&](std::int64_t begin, std::int64_t end) {
            C sum[kPiece];
            C scratch[kPiece];
            for (std::int64_t p = begin; p < end; ++p) {
              for (std::int64_t first = 0; first < channels; first += kPiece) {
                const std::int64_t n = std::min(kPiece, channels - first);
                std::fill(sum, sum + n, C{0});
                for (std::int64_t corner = p * corners; corner < (p + 1) * corners; ++corner) {
                  // Without a sign a negative number is beyond all rows.
                  if (static_cast<std::uint64_t>(rows[corner]) >= in_rows) {
                    if (rows[corner] != -1) bad.note(corner);
                    continue;
                  }
                  const auto weight = static_cast<C>(weights[corner]);
                  const C* const x = widened(in + rows[corner] * channels + first, scratch, n);
                  PUMICE_INDEPENDENT
                  for (std::int64_t c = 0; c < n; ++c)
                    sum[c] += x[c] * weight;
                }
                narrow_row(sum, out + p * channels + first, n);
              }
            }
          });
    });
  });
  bad.raise(map.rows.span<std::int32_t>(), features.rows(), "interpolate", "rows", corners);
}

void interpolate_gradient(ConstTensorView grad_output, const InterpolationMapView& map,
                          TensorView grad_features) {
  const std::int64_t channels = grad_output.extent(1);
  const std::int64_t corners = map.rows.extent(1);
  check_row_table(map.rows, map.in_rows, "interpolate_gradient", "rows");
  const RowGroups groups = group_rows(map.rows.span<std::int32_t>(), map.in_rows);
  dispatch_floating(grad_output.dtype(), "interpolate_gradient", [&]<class T>(T) {
    using C = compute_t<T>;
    const T* const in = grad_output.data<T>();
    T* const out = grad_features.data<T>();
    dispatch_weights(map.weights, [&](const auto* weights) {
      parallel_for(map.in_rows, row_grain(4 * channels), [&](std::int64_t begin, std::int64_t end) {
        C sum[kPiece];
        C scratch[kPiece];
        for (std::int64_t row = begin; row < end; ++row) {
          for (std::int64_t first = 0; first < channels; first += kPiece) {
            const std::int64_t n = std::min(kPiece, channels - first);
            std::fill(sum, sum + n, C{0});
            for (const std::int64_t corner : groups.of(row)) {
              const auto weight = static_cast<C>(weights[corner]);
              const C* const g = widened(in + corner / corners * channels + first, scratch, n);
              PUMICE_INDEPENDENT
              for (std::int64_t c = 0; c < n; ++c)
                sum[c] += g[c] * weight;
            }
            narrow_row(sum, out + row * channels + first, n);
          }
        }
      });
    });
  });
}

}   // namespace pumice::cpu
