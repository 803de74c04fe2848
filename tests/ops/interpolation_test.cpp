// Interpolation against a dictionary of sites.
#include <pumice/ops/interpolation.hpp>

#include <limits>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

/// Points in the batch items of `chance_set`, within and a little beyond its sites, at multiples of
/// 1 / 64, so that weights are exact in f32.
Tensor chance_points(std::int64_t count, int dimension, double reach, DType type,
                     std::uint64_t seed) {
  Random random(seed);
  Tensor points({count, dimension + 1}, DType::f64);
  double* at = points.data<double>();
  const auto steps = static_cast<std::int64_t>(64 * (reach + 2));
  for (std::int64_t p = 0; p < count; ++p) {
    *at++ = static_cast<double>(random.integer(0, 4));
    for (int axis = 0; axis < dimension; ++axis) {
      *at++ = static_cast<double>(random.integer(-steps, steps)) / 64;
    }
  }
  return points.to(type);
}

double reach_of(const CoordinateSet& set) {
  double reach = 0;
  for (const reference::Site& site : sites_of(set)) {
    for (std::size_t axis = 1; axis < site.size(); ++axis) {
      reach = std::max<double>(reach, std::abs(site[axis]));
    }
  }
  return reach;
}

TEST(Interpolation, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    for (int dimension = 1; dimension <= 4; ++dimension) {
      if (rows > 1000 && dimension != 3) continue;
      const CoordinateSetPtr set = chance_set(rows, 1, dimension);
      for (const DType type : kFloating) {
        SCOPED_TRACE(std::to_string(rows) + " rows in " + std::to_string(dimension) + "-D");
        const Tensor points = chance_points(rows > 1000 ? 20000 : 200, dimension, reach_of(*set),
                                            compute_of(type), 2);
        const Tensor x = chance_tensor({rows, 5}, type, 3);
        for (const bool renormalize : {false, true}) {
          const InterpolationMap map =
              interpolation_map(*set, points, {.renormalize = renormalize});
          expect_near(
              interpolate(x, map),
              reference::interpolate(matrix_of(x), sites_of(*set), matrix_of(points), renormalize),
              20, 1, "linear");
        }
        const InterpolationMap nearest =
            interpolation_map(*set, points, {.mode = Interpolation::nearest});
        expect_equal(interpolate(x, nearest),
                     reference::nearest(matrix_of(x), sites_of(*set), matrix_of(points)),
                     "nearest");
      }
    }
  }
}

TEST(Interpolation, the_gradient_is_the_transposed_sum) {
  const CoordinateSetPtr set = chance_set(65537, 4);
  const Tensor points = chance_points(9000, 3, reach_of(*set), DType::f32, 5);
  const InterpolationMap map = interpolation_map(*set, points);
  const Matrix weights = matrix_of(map.weights);
  const Matrix rows = matrix_of(map.rows);
  for (const DType type : kFloating) {
    const Tensor g = chance_tensor({9000, 3}, type, 6);
    const Matrix grad = matrix_of(g);
    Matrix expected(65537, 3);
    for (std::int64_t p = 0; p < 9000; ++p) {
      for (std::int64_t corner = 0; corner < 8; ++corner) {
        const auto row = static_cast<std::int64_t>(rows.at(p, corner));
        for (std::int64_t c = 0; c < 3 && row >= 0; ++c) {
          expected.at(row, c) += weights.at(p, corner) * grad.at(p, c);
        }
      }
    }
    expect_near(interpolate_gradient(g, map), expected, 64, 1, "gradient");
  }
}

TEST(Interpolation, gradients_are_central_differences) {
  const CoordinateSetPtr set = chance_set(33, 7);
  const Tensor points = chance_points(65, 3, reach_of(*set), DType::f64, 8);
  const Tensor x = chance_tensor({33, 2}, DType::f64, 9);
  const Tensor g = chance_tensor({65, 2}, DType::f64, 10);
  for (const bool renormalize : {false, true}) {
    const InterpolationMap map = interpolation_map(*set, points, {.renormalize = renormalize});
    expect_gradient([&](const Tensor& t) { return interpolate(t, map); }, x, g,
                    interpolate_gradient(g, map), "features");
  }
}

TEST(Interpolation, a_cell_centre_sees_that_cell_alone) {
  const std::int32_t sites[] = {0, -2, 5, 0, -1, 5};
  const CoordinateSetPtr set =
      CoordinateSet::create(Tensor::from(std::span<const std::int32_t>(sites), {2, 3}));
  const double places[] = {0, -2, 5, 0, -1.75, 5, 0, -2.5, 5, 0, 1e30, -1e30};
  const InterpolationMap map =
      interpolation_map(*set, Tensor::from(std::span<const double>(places), {4, 3}));
  const double values[] = {8, 16};
  const Tensor y = interpolate(Tensor::from(std::span<const double>(values), {2, 1}), map);
  EXPECT_EQ(y.data<double>()[0], 8);
  EXPECT_EQ(y.data<double>()[1], 0.75 * 8 + 0.25 * 16);
  EXPECT_EQ(y.data<double>()[2], 4) << "the absent cell at -3 counts as 0";
  EXPECT_EQ(y.data<double>()[3], 0) << "far outside there is nothing";
}

TEST(Interpolation, threads_do_not_change_a_bit) {
  const CoordinateSetPtr set = chance_set(65537, 4);
  const Tensor points = chance_points(65537, 3, reach_of(*set), DType::f32, 5);
  const Tensor x = chance_tensor({65537, 5}, DType::f32, 6);
  expect_same_on_threads([&] {
    const InterpolationMap map = interpolation_map(*set, points, {.renormalize = true});
    return std::vector<Tensor>{map.rows, map.weights, interpolate(x, map),
                               interpolate_gradient(x, map)};
  });
}

TEST(Interpolation, wrong_points_are_sentences) {
  const CoordinateSetPtr set = chance_set(33, 7);
  Tensor points = chance_points(9, 3, 3, DType::f32, 1);
  const auto with = [&](std::int64_t element, float value) {
    Tensor changed = points.clone();
    changed.data<float>()[element] = value;
    interpolation_map(*set, changed);
  };
  expect_sentence([&] { with(5 * 4 + 2, NAN); }, {"point 5", "axis 1", "not finite"});
  expect_sentence([&] { with(7 * 4, 0.5f); }, {"point 7", "batch index 0.5", "0 to 4"});
  expect_sentence([&] { with(0, 5); }, {"point 0", "batch index 5"});
  expect_sentence([&] { with(0, std::numeric_limits<float>::infinity()); }, {"point 0"});
  expect_sentence(
      [&] {
        interpolation_map(*set, chance_tensor({9, 3}, DType::f32, 1));
      },
      {"[9, 3]", "[P, 4]"});
  expect_sentence([&] { interpolation_map(*set, chance_tensor({9, 4}, DType::f16, 1)); }, {"f16"});
  const InterpolationMap map = interpolation_map(*set, points);
  expect_sentence(
      [&] {
        interpolate(chance_tensor({32, 4}, DType::f32, 1), map);
      },
      {"features", "33"});
  expect_sentence(
      [&] {
        interpolate_gradient(chance_tensor({8, 4}, DType::f32, 1), map);
      },
      {"grad_output", "9"});
  expect_sentence([&] { interpolate(chance_tensor({33, 4}, DType::f32, 1), {}); }, {"incomplete"});
}

}   // namespace
}   // namespace pumice::test
