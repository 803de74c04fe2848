// Operators too simple to be wrong: dictionaries and plain loops in float64. They share no code
// with the library, not even its types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/dense_convolution.hpp"

namespace pumice::reference {

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(std::int64_t r, std::int64_t c, double value = 0)
      : rows(r), columns(c), values(static_cast<std::size_t>(r * c), value) {}
  double& at(std::int64_t r, std::int64_t c) {
    return values.at(static_cast<std::size_t>(r * columns + c));
  }
  double at(std::int64_t r, std::int64_t c) const {
    return values.at(static_cast<std::size_t>(r * columns + c));
  }
};

using Rows = std::vector<std::int64_t>;

// Pooling. `source` has the input row of each maximum, -1 for none.
Matrix max_pool(const Matrix& x, const Meetings& pairs, std::int64_t out_rows, Matrix& source);
Matrix sum_pool(const Matrix& x, const Meetings& pairs, std::int64_t out_rows, bool average);
Matrix max_pool_gradient(const Matrix& grad, const Matrix& source, std::int64_t in_rows);
Matrix sum_pool_gradient(const Matrix& grad, const Meetings& pairs, std::int64_t in_rows,
                         bool average);

/// item[r]: batch item of row r.
Matrix item_max(const Matrix& x, const Rows& item, std::int64_t items, Matrix& source);
Matrix item_sum(const Matrix& x, const Rows& item, std::int64_t items, bool average);
Matrix spread(const Matrix& items, const Rows& item, bool average);

struct Norm {
  Matrix output, mean, variance;
};
struct NormGradient {
  Matrix input, weight, bias;
};
/// Normalises the rows of each item (batch norm: one item). weight, bias: [1, C].
Norm item_norm(const Matrix& x, const Rows& item, std::int64_t items, const Matrix& weight,
               const Matrix& bias, double epsilon);
NormGradient item_norm_gradient(const Matrix& x, const Matrix& grad, const Rows& item,
                                std::int64_t items, const Matrix& weight, double epsilon);
/// Normalises each row.
Norm row_norm(const Matrix& x, const Matrix& weight, const Matrix& bias, double epsilon);
NormGradient row_norm_gradient(const Matrix& x, const Matrix& grad, const Matrix& weight,
                               double epsilon);

Matrix transpose(const Matrix& x);
Matrix product(const Matrix& a, const Matrix& b);
Matrix elementwise(const Matrix& a, const Matrix& b, char operation);
Matrix beside(const Matrix& a, const Matrix& b);
Matrix columns(const Matrix& x, std::int64_t begin, std::int64_t end);

/// result[i] = x[rows[i]], zeros for -1; and the sum the other way round.
Matrix take(const Matrix& x, const Rows& rows);
Matrix scatter(const Matrix& x, const Rows& rows, std::int64_t out_rows);

/// Multilinear interpolation of x, one row a site, at points [P, 1 + D].
Matrix interpolate(const Matrix& x, const Sites& sites, const Matrix& points, bool renormalize);
Matrix nearest(const Matrix& x, const Sites& sites, const Matrix& points);

}   // namespace pumice::reference
