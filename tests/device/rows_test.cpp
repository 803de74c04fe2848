// Rows gathered, merged, interpolated and laid into dense arrays: the sequences of launches that a
// device executes, beside the CPU's.
// Covers src/ops/cuda/rows.cpp.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <limits>
#include <utility>

#include <pumice/ops/dense.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/interpolation.hpp>
#include <pumice/ops/rows.hpp>

#include "core/cuda/status.hpp"
#include "device/device_mirror.hpp"
#include "device/device_tensors.hpp"
#include "formats/cuda/identity_pairs.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};

RowList listed(jit::KernelRunner& runner, const DeviceTensor& rows, std::int64_t limit) {
  return cuda::list_of(runner, rows.view(), limit, "rows");
}

/// Rows below `limit`, a tenth of them -1.
Tensor chance_rows(std::int64_t size, std::int64_t limit, DType type, std::uint64_t seed) {
  Tensor rows({size}, type);
  Random random(seed);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t row =
        limit == 0 || random.integer(0, 9) == 0 ? -1 : random.integer(0, limit - 1);
    if (type == DType::i64)
      rows.data<std::int64_t>()[i] = row;
    else
      rows.data<std::int32_t>()[i] = static_cast<std::int32_t>(row);
  }
  return rows;
}

PUMICE_LARGE_DEVICE_TEST(DeviceRows, AreTakenOfAnyWidth) {
  for (const std::int64_t size : {0, 1, 33, 1000}) {
    for (const std::int64_t channels : {1, 3, 8, 33}) {
      for (const DType type : {DType::f32, DType::f16, DType::u8, DType::f64}) {
        for (const DType list : {DType::i32, DType::i64}) {
          const auto runner = make_runner();
          Tensor x({77, channels}, type);
          for (std::size_t i = 0; i < x.bytes(); ++i)
            static_cast<unsigned char*>(x.raw())[i] = static_cast<unsigned char>(i * 7 + i / 251);
          const Tensor rows = chance_rows(size, 77, list, 1);
          const DeviceTensor gpu_x(*runner, x);
          const DeviceTensor gpu_rows(*runner, rows);
          const DeviceTensor y(*runner, {size, channels}, type);
          cuda::take_rows(*runner, gpu_x.view(), listed(*runner, gpu_rows, 77), y.view());
          const Tensor expected = take_rows(x, rows);
          if (size == 0) continue;
          const Tensor actual = y.host();
          ASSERT_EQ(std::memcmp(actual.raw(), expected.raw(), expected.bytes()), 0)
              << size << " rows of " << channels << ' ' << name_of(type);
        }
      }
    }
  }
}

PUMICE_DEVICE_TEST(DeviceRows, TouchNothingForANumberOutOfRange) {
  const auto runner = make_runner();
  const std::int32_t numbers[] = {0, 5, -2, 2, -1, std::numeric_limits<std::int32_t>::max()};
  const Tensor rows = Tensor::from(std::span<const std::int32_t>(numbers), {6});
  const DeviceTensor gpu_x(*runner, chance_tensor({3, 4}, DType::f32, 1));
  const DeviceTensor gpu_rows(*runner, rows);
  const DeviceTensor y(*runner, Tensor::zeros({6, 4}, DType::f32));
  cuda::take_rows(*runner, gpu_x.view(), listed(*runner, gpu_rows, 3), y.view());
  const Tensor taken = y.host();
  for (const std::int64_t i : {0, 1, 2, 3, 4, 5})
    EXPECT_EQ(std::isnan(taken.data<float>()[i * 4]), i == 1 || i == 2 || i == 5) << i;

  const Tensor six = chance_tensor({6, 4}, DType::f32, 2);
  const DeviceTensor gpu_six(*runner, six);
  const DeviceTensor sums(*runner, {3, 4}, DType::f32);
  const cuda::RowGroups groups(*runner, listed(*runner, gpu_rows, 3));
  cuda::reduce_rows(*runner, groups, GroupResult::sum, gpu_six.view(), sums.view());
  const Tensor merged = sums.host();
  EXPECT_EQ(merged.data<float>()[0], six.data<float>()[0]);
  EXPECT_EQ(merged.data<float>()[4], 0);
  EXPECT_EQ(merged.data<float>()[8], six.data<float>()[12]);
}

/// The record names the list, an element and what it holds; the first to come stays.
PUMICE_DEVICE_TEST(DeviceRows, ReportANumberOutOfRange) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t hostile : {3, -2, kMost}) {
    const std::int32_t numbers[] = {0, hostile, 2, -1};
    const Tensor rows = Tensor::from(std::span<const std::int32_t>(numbers), {4});
    const Tensor table = Tensor::from(std::span<const std::int32_t>(numbers), {2, 2});
    const Tensor halves = Tensor::full({2, 2}, DType::f32, 0.5);
    const Tensor three = chance_tensor({3, 4}, DType::f32, 1);
    const Tensor four = chance_tensor({4, 4}, DType::f32, 2);
    const Tensor two = chance_tensor({2, 4}, DType::f32, 3);
    const Tensor pairs = chance_tensor({2, 2}, DType::f32, 4);
    const Tensor column = chance_tensor({3, 2}, DType::f32, 5);
    const auto expect_reported = [&](const char* list, const auto& work) {
      const auto runner = make_runner();
      work(*runner);
      const StatusRecord& record = runner->record();
      EXPECT_EQ(record.code, kBadRow) << list;
      EXPECT_EQ(record.needed, hostile);
      EXPECT_EQ(record.capacity, 3);
      EXPECT_EQ(record.row, 1);
      EXPECT_EQ(cuda::describe(record), std::string(list) + "[1] = " + std::to_string(hostile) +
                                            " is not a row; rows are 0 to 2, or -1 for none");
    };
    expect_reported("rows", [&](TestRunner& runner) {
      const DeviceTensor x(runner, three), list(runner, rows), y(runner, four);
      cuda::take_rows(runner, x.view(), listed(runner, list, 3), y.view());
    });
    expect_reported("rows", [&](TestRunner& runner) {
      const DeviceTensor x(runner, four), list(runner, rows), y(runner, three);
      const cuda::RowGroups groups(runner, listed(runner, list, 3));
      cuda::reduce_rows(runner, groups, GroupResult::sum, x.view(), y.view());
    });
    expect_reported("rows", [&](TestRunner& runner) {
      const DeviceTensor list(runner, rows);
      cuda::invert_rows(runner, listed(runner, list, 3));
    });
    expect_reported("reduce_rows_gradient: row_of", [&](TestRunner& runner) {
      const DeviceTensor dy(runner, three), list(runner, rows), dx(runner, four);
      cuda::mean_gradient(runner, dy.view(), list.view(), dx.view());
    });
    expect_reported("interpolate: rows", [&](TestRunner& runner) {
      const DeviceTensor x(runner, three), list(runner, table), weights(runner, halves);
      const DeviceTensor y(runner, two);
      cuda::interpolate(runner, x.view(), {list.view(), weights.view(), 3}, y.view());
      const Tensor seen = y.host();
      EXPECT_TRUE(std::isnan(seen.data<float>()[0]));
      EXPECT_FALSE(std::isnan(seen.data<float>()[4]));
    });
    expect_reported("interpolate_gradient: rows", [&](TestRunner& runner) {
      const DeviceTensor dy(runner, two), list(runner, table), weights(runner, halves);
      const DeviceTensor dx(runner, three);
      cuda::interpolate_gradient(runner, dy.view(), {list.view(), weights.view(), 3}, dx.view());
    });
    expect_reported("global_max_pool_gradient: argmax", [&](TestRunner& runner) {
      const DeviceTensor dy(runner, pairs), list(runner, table), dx(runner, column);
      cuda::scatter_chosen(runner, dy.view(), list.view(), dx.view());
    });
  }
}

PUMICE_DEVICE_TEST(DeviceRows, MeetThemselvesWithoutAMap) {
  for (const std::int64_t rows : {0, 1, 33, 1000}) {
    const auto runner = make_runner();
    const cuda::IdentityPairs pairs(*runner, {nullptr, rows});
    EXPECT_EQ(pairs.ref().offset_begin[0], 0);
    EXPECT_EQ(pairs.ref().offset_begin[1], rows);
    EXPECT_EQ(pairs.ref().pairs.rows(), rows);
    for (std::int64_t i = 0; i < rows; ++i)
      ASSERT_EQ(pairs.ref().in[i], i);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceRows, StandBesideEachOtherOnAUnion) {
  const CoordinateSetPtr left = chance_set(300, 7);
  const CoordinateSetPtr right = chance_set(200, 8);
  const UnionSet sites = unite(*left, *right);
  const std::int64_t rows = sites.set->size();
  for (const std::int64_t channels : {3, 8}) {
    const auto runner = make_runner();
    const Tensor a = chance_tensor({300, channels}, DType::f16, 1);
    const Tensor b = chance_tensor({200, 8}, DType::f16, 2);
    const DeviceTensor gpu_a(*runner, a);
    const DeviceTensor gpu_b(*runner, b);
    const DeviceTensor left_row(*runner, sites.left_row);
    const DeviceTensor right_row(*runner, sites.right_row);
    const DeviceTensor y(*runner, {rows, channels + 8}, DType::f16);
    const auto spread = [&](const DeviceTensor& from, const DeviceTensor& list,
                            std::int64_t first) {
      const auto inverse = cuda::invert_rows(*runner, listed(*runner, list, rows));
      const std::int64_t bytes = 2 * from.view().extent(1);
      cuda::take_rows(*runner, {from.view().raw(), bytes, bytes},
                      cuda::list_of(*runner, {inverse.data(), DType::i32, {rows}, runner->stream()},
                                    from.view().rows(), nullptr),
                      static_cast<std::byte*>(y.view().raw()) + 2 * first, 2 * (channels + 8));
    };
    spread(gpu_a, left_row, 0);
    spread(gpu_b, right_row, channels);
    const Tensor expected = concatenate(a, b, sites);
    EXPECT_EQ(std::memcmp(y.host().raw(), expected.raw(), expected.bytes()), 0);

    const DeviceTensor back(*runner, b.shape(), DType::f16);
    cuda::take_rows(
        *runner,
        {static_cast<const std::byte*>(y.view().raw()) + 2 * channels, 2 * (channels + 8), 16},
        listed(*runner, right_row, rows), back.view().raw(), 16);
    EXPECT_EQ(std::memcmp(back.host().raw(), b.raw(), b.bytes()), 0);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceRows, ThatFallTogetherAreMerged) {
  for (const auto& [size, groups] :
       {std::pair<std::int64_t, std::int64_t>{0, 5}, {1, 1}, {33, 0}, {700, 90}, {3000, 5}}) {
    for (const DType type : kStorages) {
      for (const std::int64_t channels : {3, 8}) {
        const auto runner = make_runner();
        const Tensor rows = chance_rows(size, groups, DType::i32, 1);
        const Tensor x = chance_tensor({size, channels}, type, 2);
        const Tensor dy = chance_tensor({groups, channels}, type, 3);
        const DeviceTensor gpu_rows(*runner, rows);
        const DeviceTensor gpu_x(*runner, x);
        const DeviceTensor gpu_dy(*runner, dy);
        const DeviceTensor y(*runner, dy.shape(), type);
        const DeviceTensor dx(*runner, x.shape(), type);
        const cuda::RowGroups grouped(*runner, listed(*runner, gpu_rows, groups));
        cuda::reduce_rows(*runner, grouped, GroupResult::sum, gpu_x.view(), y.view());
        expect_like(y, reduce_rows(x, rows, groups, Reduction::sum).output, 0, 0, "sum");
        // Summed in fp32 on the CPU.
        expect_like(y, scatter_rows(x, rows, groups), 64, static_cast<double>(size) / 3, "scatter");
        cuda::reduce_rows(*runner, grouped, GroupResult::mean, gpu_x.view(), y.view());
        expect_like(y, reduce_rows(x, rows, groups, Reduction::mean).output, 0, 0, "mean");
        cuda::mean_gradient(*runner, gpu_dy.view(), gpu_rows.view(), dx.view());
        expect_like(dx, reduce_rows_gradient(dy, rows, {}, Reduction::mean), 1, 1,
                    "gradient of mean");

        const ReducedRows largest = reduce_rows(x, rows, groups, Reduction::max);
        const DeviceTensor source(*runner, dy.shape(), DType::i32);
        cuda::reduce_rows(*runner, grouped, GroupResult::max, gpu_x.view(), y.view(),
                          source.view());
        expect_like(y, largest.output, 0, 0, "max");
        expect_like(source, largest.source, 0, 0, "source of max");
        cuda::chosen_gradient(*runner, gpu_dy.view(), gpu_rows.view(), source.view(), dx.view());
        expect_like(dx, reduce_rows_gradient(dy, rows, largest.source, Reduction::max), 0, 0,
                    "gradient of max");

        const ReducedRows earliest = reduce_rows(x, rows, groups, Reduction::first);
        const DeviceTensor first(*runner, {groups}, DType::i32);
        cuda::first_position(*runner, grouped, first.view());
        expect_like(first, earliest.source, 0, 0, "first");
        cuda::chosen_gradient(*runner, gpu_dy.view(), gpu_rows.view(), first.view(), dx.view());
        expect_like(dx, reduce_rows_gradient(dy, rows, earliest.source, Reduction::first), 0, 0,
                    "gradient of first");
      }
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceRows, AreInterpolatedAtPoints) {
  const std::int64_t sites = 400;
  for (const DType precision : {DType::f32, DType::f64}) {
    for (const Interpolation mode : {Interpolation::linear, Interpolation::nearest}) {
      for (const bool renormalize : {false, true}) {
        const auto runner = make_runner();
        const CoordinateSetPtr set = chance_set(sites, 7);
        const Mirror mirror(*runner, set);
        Tensor points = chance_tensor({300, 4}, precision, 1, -6, 6);
        for (std::int64_t p = 0; p < 300; ++p) {
          const std::int64_t item = p % 5;
          if (precision == DType::f64)
            points.data<double>()[4 * p] = static_cast<double>(item);
          else
            points.data<float>()[4 * p] = static_cast<float>(item);
        }
        const InterpolationMap expected =
            interpolation_map(*set, points, {.mode = mode, .renormalize = renormalize});
        const DeviceTensor gpu_points(*runner, points);
        const DeviceTensor rows(*runner, expected.rows.shape(), DType::i32);
        const DeviceTensor weights(*runner, expected.weights.shape(), precision);
        cuda::find_corners(*runner, mirror.ref(), set->batch_size(), gpu_points.view(), renormalize,
                           rows.view(), weights.view());
        EXPECT_EQ(runner->record().code, kFine);
        expect_like(rows, expected.rows, 0, 0, "rows");
        expect_like(weights, expected.weights, 16, 1, "weights");
      }
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceRows, GiveAndTakeWhatPointsSee) {
  const auto runner = make_runner();
  const auto shared = [&](const Tensor& from) {
    Tensor copy(from.shape(), from.dtype(), runner->stream(), runner->allocator());
    if (from.bytes() > 0) std::memcpy(copy.raw(), from.raw(), from.bytes());
    return copy;
  };
  const CoordinateSetPtr set = chance_set(400, 7);
  Tensor points = chance_tensor({300, 4}, DType::f32, 1, -6, 6);
  for (std::int64_t p = 0; p < 300; ++p)
    points.data<float>()[4 * p] = static_cast<float>(p % 5);
  const InterpolationMap map = interpolation_map(*set, points);
  const InterpolationMap gpu_map{shared(map.rows), shared(map.weights), map.in_rows};
  for (const DType type : kStorages) {
    for (const std::int64_t channels : {3, 8}) {
      const Tensor x = chance_tensor({400, channels}, type, 2);
      const Tensor dy = chance_tensor({300, channels}, type, 3);
      const DeviceTensor gpu_x(*runner, x);
      const DeviceTensor gpu_dy(*runner, dy);
      const DeviceTensor y(*runner, dy.shape(), type);
      const DeviceTensor dx(*runner, x.shape(), type);
      cuda::interpolate(*runner, gpu_x.view(), gpu_map, y.view());
      expect_like(y, interpolate(x, map), 16, 1, "features");
      cuda::interpolate_gradient(*runner, gpu_dy.view(), gpu_map, dx.view());
      expect_like(dx, interpolate_gradient(dy, map), 32, 4, "gradient");
    }
  }
}

PUMICE_DEVICE_TEST(DeviceRows, SayWhichPointsAreNone) {
  const auto runner = make_runner();
  const CoordinateSetPtr set = chance_set(50, 7);
  const Mirror mirror(*runner, set);
  Tensor points = Tensor::zeros({5, 4}, DType::f32);
  points.data<float>()[4] = 0.5F;
  points.data<float>()[9] = std::numeric_limits<float>::infinity();
  points.data<float>()[12] = 5;   // of items 0 to 4
  const DeviceTensor gpu_points(*runner, points);
  const DeviceTensor rows(*runner, {5, 8}, DType::i32);
  const DeviceTensor weights(*runner, {5, 8}, DType::f32);
  cuda::find_corners(*runner, mirror.ref(), 5, gpu_points.view(), false, rows.view(),
                     weights.view());
  EXPECT_EQ(runner->record().code, kOutsideLayout);
  EXPECT_EQ(runner->record().needed, 3);
  EXPECT_EQ(runner->record().capacity, 5);
  const Tensor found = weights.host();
  for (std::int64_t p = 0; p < 5; ++p)
    EXPECT_EQ(std::isnan(found.data<float>()[8 * p]), p >= 1 && p <= 3) << p;
}

PUMICE_LARGE_DEVICE_TEST(DeviceRows, GoToDenseArraysAndBack) {
  const CoordinateSetPtr set = chance_set(300, 7);
  const DenseGrid grid = grid_of(*set);
  for (const DType type : {DType::f32, DType::f16, DType::f64}) {
    for (const bool crop : {false, true}) {
      const auto runner = make_runner();
      DenseGrid smaller = grid;
      if (crop) --smaller.shape[1];
      const Tensor x = chance_tensor({300, 5}, type, 1);
      const Tensor expected = to_dense(x, *set, {.grid = smaller, .crop = crop});
      DensePlacement placement{.dimension = 3};
      std::int64_t stride = 1;
      for (int axis = 2; axis >= 0; --axis) {
        placement.stride[axis] = stride;
        placement.low[axis] = smaller.low[static_cast<std::size_t>(axis)];
        placement.shape[axis] = smaller.shape[static_cast<std::size_t>(axis)];
        stride *= placement.shape[axis];
      }
      placement.channel_stride = stride;
      placement.batch_stride = 5 * stride;
      const DeviceTensor coordinates(*runner, set->coordinates());
      const DeviceTensor gpu_x(*runner, x);
      const DeviceTensor dense(*runner, Tensor::zeros(expected.shape(), type));
      const RowCountRef rows{nullptr, 300};
      cuda::place_rows(*runner, rows, coordinates.view(), placement, crop, "to_dense", gpu_x.view(),
                       dense.view());
      EXPECT_EQ(runner->record().code, kFine);
      EXPECT_EQ(std::memcmp(dense.host().raw(), expected.raw(), expected.bytes()), 0);
      const DeviceTensor again(*runner, x.shape(), type);
      cuda::pick_rows(*runner, rows, coordinates.view(), placement, crop, "to_dense_gradient",
                      dense.view(), again.view());
      const Tensor picked = to_dense_gradient(expected, *set, {.grid = smaller, .crop = crop});
      EXPECT_EQ(std::memcmp(again.host().raw(), picked.raw(), picked.bytes()), 0);
      if (!crop) continue;
      cuda::place_rows(*runner, rows, coordinates.view(), placement, false, "to_dense",
                       gpu_x.view(), dense.view());
      EXPECT_EQ(runner->record().code, kOutsideLayout);
      EXPECT_GT(runner->record().needed, 0);
    }
  }
}

}   // namespace
}   // namespace pumice::test
