// Sums over rows in room for more of them than there are: the same bits in any room, for one item
// and for several of very different sizes, and nothing but the rows in use is read or written.
// Covers src/ops/cuda/columns.cpp and column_walk.h: shares of items whose sizes the device knows.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "device/device_mirror.hpp"
#include "device/device_tensors.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/ops_support.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// Rows of numbers, NaN behind them, and results of norms and sums over them, full of NaN.
class Problem {
 public:
  /// `counted`: only the device knows how many rows are in use; else the host does, and there is
  /// room for no more.
  Problem(const TestRunner& runner, const std::vector<std::int64_t>& sizes, std::int64_t capacity,
          std::int64_t channels, DType type, bool counted = true)
      : used_(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})),
        x_(runner, {capacity, channels}, type),
        dy_(runner, {capacity, channels}, type),
        y_(runner, {capacity, channels}, type),
        dx_(runner, {capacity, channels}, type),
        items_(static_cast<std::int64_t>(sizes.size())),
        mean_(runner, {items_, channels}, DType::f32),
        deviation_(runner, {items_, channels}, DType::f32),
        of_weight_(runner, {channels}, DType::f32),
        of_bias_(runner, {channels}, DType::f32),
        sums_(runner, {items_, channels}, DType::f32),
        most_(runner, {items_, channels}, type),
        chosen_(runner, {items_, channels}, DType::i32),
        count_(runner.count(used_)) {
    std::vector<std::int64_t> begin{0};
    for (const std::int64_t size : sizes)
      begin.push_back(begin.back() + size);
    begin_ = runner.copy(std::span<const std::int64_t>(begin));
    fill(x_, chance_tensor({used_, channels}, type, 1, 30, 32));
    fill(dy_, chance_tensor({used_, channels}, type, 2));
    rows_ = {.rows = {counted ? count_.data() : nullptr, capacity},
             .begin = items_ > 1 ? begin_.data() : nullptr,
             .items = static_cast<std::int32_t>(items_)};
  }

  void run(TestRunner& runner) {
    cuda::normalize_by_own(runner, rows_, x_.view(),
                           {.mean = mean_.view(),
                            .inverse_deviation = deviation_.view(),
                            .epsilon = kEpsilon,
                            .empty = EmptyItem::zero},
                           {}, {}, y_.view());
    cuda::normalize_gradient(runner, rows_, x_.view(), dy_.view(), mean_.view(), deviation_.view(),
                             {}, false, {dx_.view(), of_weight_.view(), of_bias_.view()});
    cuda::sum_items(runner, rows_, dy_.view(), true, sums_.view());
    cuda::largest_of_items(runner, rows_, x_.view(), most_.view(), chosen_.view());
  }

  std::vector<Tensor> of_items() const {
    return {mean_.host(), deviation_.host(), of_weight_.host(), of_bias_.host(),
            sums_.host(), most_.host(),      chosen_.host()};
  }
  /// The rows in use; the others must not have been written.
  std::vector<Tensor> of_rows() const {
    std::vector<Tensor> made;
    for (const DeviceTensor* tensor : {&y_, &dx_}) {
      const Tensor host = tensor->host();
      Tensor& part = made.emplace_back(Shape{used_, host.extent(1)}, host.dtype());
      if (part.bytes() > 0) std::memcpy(part.raw(), host.raw(), part.bytes());
      const auto* bytes = static_cast<const unsigned char*>(host.raw());
      for (std::size_t i = part.bytes(); i < host.bytes(); ++i)
        EXPECT_EQ(bytes[i], 0xff) << "byte " << i << " of " << host.bytes();
    }
    return made;
  }

 private:
  static constexpr double kEpsilon = 1e-5;
  static void fill(const DeviceTensor& to, const Tensor& from) {
    if (from.bytes() > 0) std::memcpy(to.view().raw(), from.raw(), from.bytes());
  }

  std::int64_t used_;
  DeviceTensor x_, dy_, y_, dx_;
  std::int64_t items_;
  DeviceTensor mean_, deviation_, of_weight_, of_bias_, sums_, most_, chosen_;
  Buffer<std::int64_t> count_, begin_;
  RowItems rows_{};
};

void expect_same(const std::vector<Tensor>& made, const std::vector<Tensor>& alone) {
  ASSERT_EQ(made.size(), alone.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    EXPECT_TRUE(same_bits(made[i], alone[i])) << "result " << i;
}

PUMICE_LARGE_DEVICE_TEST(ColumnCounts, GiveTheSameBitsInAnyRoom) {
  const std::vector<std::int64_t> all_sizes[] = {
      {0}, {2}, {31}, {33}, {3000}, {2, 0, 900, 33}, {0, 0, 5}, {1200, 2}};
  for (const std::vector<std::int64_t>& sizes : all_sizes) {
    const std::int64_t used = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    for (const std::int64_t channels : {3, 36}) {
      const auto runner = make_runner();
      Problem alone(*runner, sizes, used, channels, DType::f32, false);
      alone.run(*runner);
      for (const std::int64_t capacity : {used, used + 1, 2 * used, 9 * used + 700}) {
        SCOPED_TRACE(std::to_string(sizes.size()) + " items, " + std::to_string(used) +
                     " rows in room for " + std::to_string(capacity));
        Problem in_room(*runner, sizes, capacity, channels, DType::f32);
        in_room.run(*runner);
        expect_same(in_room.of_items(), alone.of_items());
        expect_same(in_room.of_rows(), alone.of_rows());
      }
    }
  }
}

/// One row has no variance: it is reported where that was asked for, and its running statistics
/// stay.
PUMICE_DEVICE_TEST(ColumnCounts, ReportASingleRow) {
  const auto runner = make_runner();
  const DeviceTensor x(*runner, chance_tensor({9, 36}, DType::f32, 1));
  const DeviceTensor y(*runner, {9, 36}, DType::f32);
  const DeviceTensor mean(*runner, {36}, DType::f32);
  const DeviceTensor deviation(*runner, {36}, DType::f32);
  const Tensor kept = chance_tensor({36}, DType::f32, 2);
  const DeviceTensor running_mean(*runner, kept), running_variance(*runner, kept);
  const auto count = runner->count(1);
  RowItems rows = cuda::all_rows(x.view());
  rows.rows.count = count.data();
  for (const bool reports : {false, true}) {
    cuda::normalize_by_own(*runner, rows, x.view(),
                           {.mean = mean.view(),
                            .inverse_deviation = deviation.view(),
                            .epsilon = 1e-5,
                            .running = {reports ? running_mean.view() : TensorView{},
                                        reports ? running_variance.view() : TensorView{},
                                        {},
                                        0.1},
                            .reports_single_row = reports},
                           {}, {}, y.view());
    EXPECT_EQ(runner->record().code, reports ? kSingleRow : kFine);
    const Tensor made = y.host();
    for (std::int64_t c = 0; c < 36; ++c)
      ASSERT_EQ(std::isnan(made.data<float>()[c]), reports) << c;
  }
  EXPECT_TRUE(same_bits(running_mean.host(), kept));
  EXPECT_TRUE(same_bits(running_variance.host(), kept));
}

}   // namespace
}   // namespace pumice::test
