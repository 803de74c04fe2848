// How many rows of a call's matrices are in use: what an operator does with the count that it is
// given. Where the host knows it, views end there; where only the device does, kernels read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <pumice/core/row_count.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice {

class RowsInUse {
 public:
  /// `rows` null: all of `features`. UserError where it counts the rows of something else.
  RowsInUse(const RowCount* rows, const ConstTensorView& features, std::string_view op)
      : ref_{nullptr, features.rows()} {
    if (rows == nullptr) return;
    PUMICE_EXPECTS(rows->capacity() == features.rows(), op, ": rows counts within ",
                   rows->capacity(), " and features have ", features.rows(),
                   " rows; give the count of these features");
    ref_ = rows->host_knows() ? RowCountRef{nullptr, rows->host()} : rows->ref();
  }

  /// The first `rows`, which the host knows.
  static RowsInUse first(std::int64_t rows) { return RowsInUse({nullptr, rows}); }

  bool host_knows() const { return ref_.count == nullptr; }
  /// The rows in use where the host knows them, else those that there is room for.
  std::int64_t bound() const { return ref_.capacity; }
  /// For kernels that are given views of `of`.
  const RowCountRef& ref() const { return ref_; }
  /// What kernels may go over: the rows in use where the host knows them. Of an undefined view,
  /// that.
  template <bool Const> BasicTensorView<Const> of(const BasicTensorView<Const>& view) const {
    if (!view.defined() || view.rows() == ref_.capacity) return view;
    std::array<std::int64_t, Shape::kMaxRank> extents{};
    const auto all = view.shape().extents();
    std::copy(all.begin(), all.end(), extents.begin());
    extents[0] = ref_.capacity;
    return {view.raw(), view.dtype(),
            Shape(std::span<const std::int64_t>(extents.data(), all.size())), view.stream()};
  }

 private:
  explicit RowsInUse(const RowCountRef& ref) : ref_(ref) {}
  RowCountRef ref_;
};

}   // namespace pumice
