// Elementwise loops and copies of columns.
#include "ops/cpu/elementwise.hpp"

#include <cstring>

#include "ops/cpu/row_numbers.hpp"
#include "ops/cpu/widened.hpp"

namespace pumice::cpu {
namespace {

/// For each row of the union, the row of one side or -1.
Buffer<std::int64_t> side_rows(ConstTensorView rows, std::int64_t union_rows) {
  Buffer<std::int64_t> inverse = invert_rows(rows.span<std::int32_t>(), union_rows);
  PUMICE_EXPECTS(inverse.size() == union_rows,
                 "union: two rows of one side name the same row of the union; pass what unite "
                 "returned");
  return inverse;
}

}   // namespace

void combine(ConstTensorView left, ConstTensorView right, Binary operation, TensorView output) {
  dispatch_floating(output.dtype(), "elementwise", [&]<class T>(T) {
    const auto run = [&](const auto& element) {
      for_elements(
          output.data<T>(), output.elements(),
          [&](auto* to, const auto* a, const auto* b, std::int64_t n) {
            PUMICE_INDEPENDENT
            for (std::int64_t i = 0; i < n; ++i)
              to[i] = element(a[i], b[i]);
          },
          left.data<T>(), right.data<T>());
    };
    switch (operation) {
      case Binary::add: run([](auto a, auto b) { return a + b; }); break;
      case Binary::subtract: run([](auto a, auto b) { return a - b; }); break;
      case Binary::multiply: run([](auto a, auto b) { return a * b; }); break;
    }
  });
}

void scale(ConstTensorView features, double factor, TensorView output) {
  dispatch_floating(output.dtype(), "scale", [&]<class T>(T) {
    const auto by = static_cast<compute_t<T>>(factor);
    for_elements(
        output.data<T>(), output.elements(),
        [&](auto* to, const auto* x, std::int64_t n) {
          PUMICE_INDEPENDENT
          for (std::int64_t i = 0; i < n; ++i)
            to[i] = x[i] * by;
        },
        features.data<T>());
  });
}

void add_in_place(TensorView total, ConstTensorView term) {
  combine(total, term, Binary::add, total);
}

void join_columns(std::span<const ColumnPart> parts, std::int64_t rows, std::size_t wide_bytes,
                  std::byte* wide) {
  parallel_for(rows, row_grain(static_cast<std::int64_t>(wide_bytes / 4)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const auto r = static_cast<std::size_t>(row);
                   for (const ColumnPart& part : parts) {
                     if (part.bytes == 0) continue;
                     std::memcpy(wide + r * wide_bytes + part.offset,
                                 part.narrow_const + r * part.bytes, part.bytes);
                   }
                 }
               });
}

void cut_columns(std::span<const ColumnPart> parts, std::int64_t rows, std::size_t wide_bytes,
                 const std::byte* wide) {
  parallel_for(rows, row_grain(static_cast<std::int64_t>(wide_bytes / 4)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const auto r = static_cast<std::size_t>(row);
                   for (const ColumnPart& part : parts) {
                     if (part.bytes == 0) continue;
                     std::memcpy(part.narrow + r * part.bytes, wide + r * wide_bytes + part.offset,
                                 part.bytes);
                   }
                 }
               });
}

void union_add(ConstTensorView left, ConstTensorView left_row, ConstTensorView right,
               ConstTensorView right_row, TensorView output) {
  const std::int64_t channels = output.extent(1);
  const auto left_of = side_rows(left_row, output.rows());
  const auto right_of = side_rows(right_row, output.rows());
  dispatch_floating(output.dtype(), "add", [&]<class T>(T) {
    const T* const x = left.data<T>();
    const T* const y = right.data<T>();
    T* const out = output.data<T>();
    const auto add = [](auto* to, const auto* a, const auto* b, std::int64_t n) {
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = a[i] + b[i];
    };
    parallel_for(output.rows(), row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        T* const to = out + row * channels;
        const T* const a = left_of[row] < 0 ? nullptr : x + left_of[row] * channels;
        const T* const b = right_of[row] < 0 ? nullptr : y + right_of[row] * channels;
        if (a != nullptr && b != nullptr)
          for_pieces(to, channels, add, a, b);
        else if (a != nullptr || b != nullptr)
          std::copy_n(a != nullptr ? a : b, channels, to);
        else
          std::fill_n(to, channels, T{});
      }
    });
  });
}

void union_concatenate(ConstTensorView left, ConstTensorView left_row, ConstTensorView right,
                       ConstTensorView right_row, TensorView output) {
  const auto left_of = side_rows(left_row, output.rows());
  const auto right_of = side_rows(right_row, output.rows());
  const std::int64_t left_channels = left.extent(1);
  const std::int64_t right_channels = right.extent(1);
  dispatch_floating(output.dtype(), "concatenate", [&]<class T>(T) {
    const T* const x = left.data<T>();
    const T* const y = right.data<T>();
    T* const out = output.data<T>();
    const auto place = [](const T* from, std::int64_t row, std::int64_t n, T* to) {
      if (row < 0)
        std::fill_n(to, n, T{});
      else
        std::copy_n(from + row * n, n, to);
    };
    parallel_for(output.rows(), row_grain(output.extent(1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     T* const to = out + row * output.extent(1);
                     place(x, left_of[row], left_channels, to);
                     place(y, right_of[row], right_channels, to + left_channels);
                   }
                 });
  });
}

void take_columns(ConstTensorView wide, ConstTensorView rows, std::int64_t first, TensorView part) {
  const auto element = size_of(wide.dtype());
  const auto wide_bytes = static_cast<std::size_t>(wide.extent(1)) * element;
  const auto bytes = static_cast<std::size_t>(part.extent(1)) * element;
  if (bytes == 0) return;
  const auto* from =
      static_cast<const std::byte*>(wide.raw()) + static_cast<std::size_t>(first) * element;
  auto* to = static_cast<std::byte*>(part.raw());
  const auto* row_of = rows.data<std::int32_t>();
  parallel_for(part.rows(), row_grain(part.extent(1)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::memcpy(to + static_cast<std::size_t>(row) * bytes,
                  from + static_cast<std::size_t>(row_of[row]) * wide_bytes, bytes);
    }
  });
}

}   // namespace pumice::cpu
