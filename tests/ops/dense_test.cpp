// Dense arrays against loops over all their cells.
#include <pumice/ops/dense.hpp>

#include <map>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

/// Calls body(index) for every index of `shape` in order.
template <class Body> void for_indices(const Shape& shape, const Body& body) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    body(i, index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (++index[a] < shape[axis]) break;
      index[a] = 0;
    }
  }
}

std::map<reference::Site, std::int64_t> rows_of(const CoordinateSet& set) {
  std::map<reference::Site, std::int64_t> rows;
  std::int64_t row = 0;
  for (const reference::Site& site : sites_of(set))
    rows[site] = row++;
  return rows;
}

double value_at(const Tensor& tensor, std::int64_t i) {
  return dispatch_floating(tensor.dtype(), "test", [&]<class T>(T) {
    return static_cast<double>(widen(tensor.data<T>()[i]));
  });
}

/// Every element of `dense` is the feature of the site there, or 0.
void check_dense(const Tensor& dense, const Tensor& x, const CoordinateSet& set, const Axes& low) {
  const auto rows = rows_of(set);
  ASSERT_EQ(dense.shape().rank(), set.dimension() + 2);
  ASSERT_EQ(dense.extent(0), set.batch_size());
  ASSERT_EQ(dense.extent(1), x.extent(1));
  for_indices(dense.shape(), [&](std::int64_t i, const std::vector<std::int64_t>& index) {
    reference::Site site{static_cast<int>(index[0])};
    for (std::size_t axis = 0; axis + 2 < index.size(); ++axis) {
      site.push_back(static_cast<int>(index[axis + 2]) + low[axis]);
    }
    const auto found = rows.find(site);
    const double expected =
        found == rows.end() ? 0 : value_at(x, found->second * x.extent(1) + index[1]);
    ASSERT_EQ(value_at(dense, i), expected) << "element " << i;
  });
}

TEST(Dense, every_cell_has_its_site_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    for (int dimension = 1; dimension <= 4; ++dimension) {
      if (rows > 1000 && dimension != 3) continue;
      const CoordinateSetPtr set = chance_set(rows, 1, dimension);
      const DenseGrid grid = grid_of(*set);
      for (const DType type : kFloating) {
        SCOPED_TRACE(std::to_string(rows) + " rows in " + std::to_string(dimension) + "-D");
        const Tensor x = chance_tensor({rows, 3}, type, 2);
        const Tensor dense = to_dense(x, *set);
        if (rows < 1000 || type == DType::f32) check_dense(dense, x, *set, grid.low);
        // What a site finds in the array is what it put there.
        expect_equal(to_dense_gradient(dense, *set), matrix_of(x), "gradient");
      }
    }
  }
}

TEST(Dense, a_grid_crops_or_refuses) {
  const CoordinateSetPtr set = chance_set(500, 3);
  const Tensor x = chance_tensor({500, 2}, DType::f32, 4);
  const DenseGrid grid{{-2, 0, -3, 0}, {4, 2, 5, 0}};
  check_dense(to_dense(x, *set, {.grid = grid, .crop = true}), x, *set, grid.low);
  expect_sentence([&] { to_dense(x, *set, {.grid = grid}); },
                  {"to_dense", "row", "outside the grid [-2, 2) x [0, 2) x [-3, 2)", "crop"});

  const Tensor g = chance_tensor({5, 2, 4, 2, 5}, DType::f32, 5);
  const Tensor picked = to_dense_gradient(g, *set, {.grid = grid, .crop = true});
  const reference::Sites sites = sites_of(*set);
  for (std::int64_t row = 0; row < set->size(); ++row) {
    const reference::Site& s = sites[static_cast<std::size_t>(row)];
    const std::int64_t u = s[1] + 2, v = s[2], w = s[3] + 3;
    const bool inside = u >= 0 && u < 4 && v >= 0 && v < 2 && w >= 0 && w < 5;
    for (std::int64_t c = 0; c < 2; ++c) {
      const float expected =
          inside ? g.data<float>()[(((s[0] * 2 + c) * 4 + u) * 2 + v) * 5 + w] : 0;
      ASSERT_EQ(picked.data<float>()[row * 2 + c], expected);
    }
  }
}

TEST(Dense, the_spatial_shape_is_the_grid) {
  const std::int32_t sites[] = {0, 1, 2, 1, 0, 3};
  const CoordinateSetPtr set =
      CoordinateSet::create(Tensor::from(std::span<const std::int32_t>(sites), {2, 3}),
                            {.spatial_shape = Axes{4, 6, 0, 0}});
  const Tensor dense = to_dense(Tensor::full({2, 1}, DType::f32, 7), *set);
  EXPECT_EQ(dense.shape(), (Shape{2, 1, 4, 6}));
  EXPECT_EQ(dense.data<float>()[1 * 6 + 2], 7);
  EXPECT_EQ(dense.data<float>()[24 + 3], 7);
}

TEST(Dense, a_folded_axis_becomes_channels) {
  for (int dimension = 2; dimension <= 4; ++dimension) {
    const CoordinateSetPtr set = chance_set(200, 6, dimension);
    const DenseGrid grid = grid_of(*set);
    const Tensor x = chance_tensor({200, 3}, DType::f32, 7);
    const Tensor dense = to_dense(x, *set);
    for (int axis = 0; axis < dimension; ++axis) {
      const Tensor bev = to_bev(x, *set, axis);
      ASSERT_EQ(bev.shape().rank(), dimension + 1);
      const std::int64_t depth = grid.shape[static_cast<std::size_t>(axis)];
      EXPECT_EQ(bev.extent(1), 3 * depth);
      for_indices(dense.shape(), [&](std::int64_t i, const std::vector<std::int64_t>& index) {
        const std::int64_t z = index[static_cast<std::size_t>(axis) + 2];
        std::int64_t at = index[0] * bev.extent(1) + index[1] * depth + z;
        int out_axis = 2;
        for (int other = 0; other < dimension; ++other) {
          if (other == axis) continue;
          at = at * bev.extent(out_axis++) + index[static_cast<std::size_t>(other) + 2];
        }
        ASSERT_EQ(bev.data<float>()[at], dense.data<float>()[i]);
      });
      expect_equal(to_bev_gradient(bev, *set, axis), matrix_of(x), "gradient");
    }
  }
}

TEST(Dense, from_dense_gives_the_sites_and_back) {
  for (const std::int64_t rows : kSizes) {
    for (const DType type : kFloating) {
      const CoordinateSetPtr set = chance_set(rows, 8);
      // No feature is 0, so every site is found again.
      const Tensor x = chance_tensor({rows, 2}, type, 9, 0.5, 1);
      const DenseGrid grid = grid_of(*set);
      const Tensor dense = to_dense(x, *set);
      const SparseRows found = from_dense(dense, {.low = grid.low});
      ASSERT_EQ(found.set->size(), rows);
      EXPECT_EQ(found.set->batch_size(), 5);
      EXPECT_EQ(found.grid.shape, grid.shape);
      const auto known = rows_of(*set);
      const Matrix values = matrix_of(x);
      const Matrix got = matrix_of(found.features);
      const reference::Sites sites = sites_of(*found.set);
      EXPECT_TRUE(std::is_sorted(sites.begin(), sites.end())) << "rows come in array order";
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto from = known.find(sites[static_cast<std::size_t>(row)]);
        ASSERT_NE(from, known.end());
        for (std::int64_t c = 0; c < 2; ++c) {
          ASSERT_EQ(got.at(row, c), values.at(from->second, c));
        }
      }
      const Tensor back = from_dense_gradient(found.features, *found.set, found.grid);
      ASSERT_EQ(back.shape(), dense.shape());
      if (back.bytes() > 0) {
        EXPECT_EQ(std::memcmp(back.raw(), dense.raw(), back.bytes()), 0);
      }
    }
  }
}

TEST(Dense, a_mask_decides_and_nan_is_not_zero) {
  const float values[] = {0, -0.0f, 3, 0, 0, NAN, 0, 0};   // [2, 2, 2]: batch, channels, x
  const Tensor dense = Tensor::from(std::span<const float>(values), {2, 2, 2});
  const SparseRows found = from_dense(dense);
  EXPECT_EQ(sites_of(*found.set), (reference::Sites{{0, 0}, {1, 1}}));
  const std::uint8_t marks[] = {0, 1, 0, 0};
  const Tensor mask = Tensor::from(std::span<const std::uint8_t>(marks), {2, 2});
  const SparseRows masked = from_dense(dense, {.low = {-7, 0, 0, 0}, .mask = mask});
  EXPECT_EQ(sites_of(*masked.set), (reference::Sites{{0, -6}}));
  EXPECT_EQ(masked.features.data<float>()[0], 0);
  EXPECT_EQ(masked.set->batch_size(), 2);
}

TEST(Dense, gradients_are_central_differences) {
  const CoordinateSetPtr set = chance_set(31, 10, 2);
  const Tensor x = chance_tensor({31, 2}, DType::f64, 1);
  const Tensor shape = to_dense(x, *set);
  const Tensor g = chance_tensor(shape.shape(), DType::f64, 2);
  expect_gradient([&](const Tensor& t) { return to_dense(t, *set); }, x, g,
                  to_dense_gradient(g, *set), "to_dense");
  const Tensor h = chance_tensor(to_bev(x, *set, 1).shape(), DType::f64, 3);
  expect_gradient([&](const Tensor& t) { return to_bev(t, *set, 1); }, x, h,
                  to_bev_gradient(h, *set, 1), "to_bev");
  const Tensor dense = chance_tensor({2, 2, 3, 4}, DType::f64, 4, 1, 2);
  const SparseRows found = from_dense(dense);
  const Tensor k = chance_tensor(found.features.shape(), DType::f64, 5);
  expect_gradient([&](const Tensor& t) { return from_dense(t).features; }, dense, k,
                  from_dense_gradient(k, *found.set, found.grid), "from_dense");
}

TEST(Dense, threads_do_not_change_a_bit) {
  const CoordinateSetPtr set = chance_set(65537, 11);
  const Tensor x = chance_tensor({65537, 2}, DType::f32, 1);
  expect_same_on_threads([&] {
    const Tensor dense = to_dense(x, *set);
    const SparseRows found = from_dense(dense);
    return std::vector<Tensor>{dense, to_bev(x, *set, 2), found.features, found.set->coordinates()};
  });
}

TEST(Dense, wrong_shapes_are_sentences) {
  const CoordinateSetPtr set = chance_set(31, 12);
  const Tensor x = chance_tensor({31, 2}, DType::f32, 1);
  expect_sentence(
      [&] {
        to_dense(chance_tensor({30, 2}, DType::f32, 1), *set);
      },
      {"features", "31"});
  expect_sentence(
      [&] {
        to_dense(x, *set, {.grid = DenseGrid{{0}, {1, -1, 1, 1}}});
      },
      {"grid.shape[1] = -1"});
  expect_sentence([&] { to_bev(x, *set, 3); }, {"axis = 3", "0 to 2"});
  expect_sentence([&] { to_bev(x, *chance_set(31, 1, 1), 0); }, {"to_dense"});
  expect_sentence([&] { to_dense_gradient(x, *set); }, {"grad_dense", "3 spatial axes"});
  expect_sentence([&] { from_dense(x); }, {"[31, 2]", "spatial"});
  const std::int64_t huge = std::int64_t{1} << 31;
  expect_sentence(
      [&] {
        to_dense(x, *set, {.grid = DenseGrid{{0}, {1 << 30, 1 << 30, 1 << 30, 0}}, .crop = true});
      },
      {"2^63"});
  expect_sentence(
      [&] {
        from_dense(ConstTensorView(nullptr, DType::f32, {1, 0, huge}));
      },
      {"axis 0", "int32"});
  expect_sentence(
      [&] {
        from_dense(chance_tensor({1, 1, 4}, DType::f32, 1), {.mask = Tensor({1, 3}, DType::u8)});
      },
      {"mask", "[1, 3]", "[1, 4]"});
}

}   // namespace
}   // namespace pumice::test
