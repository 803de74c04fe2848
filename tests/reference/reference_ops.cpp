// The loops, written for reading. Long sums are kept in long double: a plain sum of 65,537 doubles
// would be less accurate than what it is to check.
#include "reference/reference_ops.hpp"

#include <cmath>
#include <cstddef>
#include <map>

namespace pumice::reference {
namespace {

/// Rows of each item.
std::map<std::int64_t, Rows> members_of(const Rows& item) {
  std::map<std::int64_t, Rows> members;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(item.size()); ++row) {
    members[item[static_cast<std::size_t>(row)]].push_back(row);
  }
  return members;
}

std::map<Site, std::int64_t> rows_of(const Sites& sites) {
  std::map<Site, std::int64_t> rows;
  for (std::size_t row = 0; row < sites.size(); ++row) {
    rows[sites[row]] = static_cast<std::int64_t>(row);
  }
  return rows;
}

}   // namespace

Matrix max_pool(const Matrix& x, const Meetings& pairs, std::int64_t out_rows, Matrix& source) {
  Matrix y(out_rows, x.columns);
  source = Matrix(out_rows, x.columns, -1);
  for (const Meeting& pair : pairs) {   // in the order of offsets
    for (std::int64_t c = 0; c < x.columns; ++c) {
      if (source.at(pair.out, c) < 0 || x.at(pair.in, c) > y.at(pair.out, c)) {
        y.at(pair.out, c) = x.at(pair.in, c);
        source.at(pair.out, c) = static_cast<double>(pair.in);
      }
    }
  }
  return y;
}

Matrix sum_pool(const Matrix& x, const Meetings& pairs, std::int64_t out_rows, bool average) {
  Matrix y(out_rows, x.columns);
  std::map<std::int64_t, int> count;
  for (const Meeting& pair : pairs) {
    ++count[pair.out];
    for (std::int64_t c = 0; c < x.columns; ++c)
      y.at(pair.out, c) += x.at(pair.in, c);
  }
  if (!average) return y;
  for (const auto& [row, n] : count) {
    for (std::int64_t c = 0; c < x.columns; ++c)
      y.at(row, c) /= n;
  }
  return y;
}

Matrix max_pool_gradient(const Matrix& grad, const Matrix& source, std::int64_t in_rows) {
  Matrix result(in_rows, grad.columns);
  for (std::int64_t r = 0; r < grad.rows; ++r) {
    for (std::int64_t c = 0; c < grad.columns; ++c) {
      const auto from = static_cast<std::int64_t>(source.at(r, c));
      if (from >= 0) result.at(from, c) += grad.at(r, c);
    }
  }
  return result;
}

Matrix sum_pool_gradient(const Matrix& grad, const Meetings& pairs, std::int64_t in_rows,
                         bool average) {
  std::map<std::int64_t, int> count;
  for (const Meeting& pair : pairs)
    ++count[pair.out];
  Matrix result(in_rows, grad.columns);
  for (const Meeting& pair : pairs) {
    for (std::int64_t c = 0; c < grad.columns; ++c) {
      result.at(pair.in, c) += grad.at(pair.out, c) / (average ? count[pair.out] : 1);
    }
  }
  return result;
}

Matrix item_max(const Matrix& x, const Rows& item, std::int64_t items, Matrix& source) {
  Meetings pairs;
  for (std::size_t row = 0; row < item.size(); ++row) {
    pairs.push_back({0, static_cast<std::int64_t>(row), item[row]});
  }
  return max_pool(x, pairs, items, source);
}

Matrix item_sum(const Matrix& x, const Rows& item, std::int64_t items, bool average) {
  Matrix y(items, x.columns);
  for (const auto& [i, rows] : members_of(item)) {
    for (std::int64_t c = 0; c < x.columns; ++c) {
      long double sum = 0;
      for (const std::int64_t row : rows)
        sum += x.at(row, c);
      const auto count = static_cast<long double>(average ? rows.size() : 1);
      y.at(i, c) = static_cast<double>(sum / count);
    }
  }
  return y;
}

Matrix spread(const Matrix& items, const Rows& item, bool average) {
  Matrix y(static_cast<std::int64_t>(item.size()), items.columns);
  for (const auto& [i, rows] : members_of(item)) {
    for (const std::int64_t row : rows) {
      for (std::int64_t c = 0; c < items.columns; ++c) {
        y.at(row, c) = items.at(i, c) / (average ? static_cast<double>(rows.size()) : 1.0);
      }
    }
  }
  return y;
}

Norm item_norm(const Matrix& x, const Rows& item, std::int64_t items, const Matrix& weight,
               const Matrix& bias, double epsilon) {
  Norm norm{Matrix(x.rows, x.columns), item_sum(x, item, items, true), Matrix(items, x.columns)};
  for (const auto& [i, rows] : members_of(item)) {
    for (std::int64_t c = 0; c < x.columns; ++c) {
      long double squares = 0;
      for (const std::int64_t row : rows) {
        const double d = x.at(row, c) - norm.mean.at(i, c);
        squares += d * d;
      }
      norm.variance.at(i, c) = static_cast<double>(squares / static_cast<long double>(rows.size()));
      for (const std::int64_t row : rows) {
        norm.output.at(row, c) = (x.at(row, c) - norm.mean.at(i, c)) /
                                     std::sqrt(norm.variance.at(i, c) + epsilon) * weight.at(0, c) +
                                 bias.at(0, c);
      }
    }
  }
  return norm;
}

NormGradient item_norm_gradient(const Matrix& x, const Matrix& grad, const Rows& item,
                                std::int64_t items, const Matrix& weight, double epsilon) {
  const Norm plain =
      item_norm(x, item, items, Matrix(1, x.columns, 1), Matrix(1, x.columns), epsilon);
  NormGradient result{Matrix(x.rows, x.columns), Matrix(1, x.columns), Matrix(1, x.columns)};
  for (const auto& [i, rows] : members_of(item)) {
    const auto n = static_cast<double>(rows.size());
    for (std::int64_t c = 0; c < x.columns; ++c) {
      long double sum_of_all = 0, sum_along = 0;
      for (const std::int64_t row : rows) {
        sum_of_all += grad.at(row, c);
        sum_along += grad.at(row, c) * plain.output.at(row, c);
      }
      const auto sum = static_cast<double>(sum_of_all);
      const auto along = static_cast<double>(sum_along);
      result.weight.at(0, c) += along;
      result.bias.at(0, c) += sum;
      for (const std::int64_t row : rows) {
        result.input.at(row, c) = weight.at(0, c) / std::sqrt(plain.variance.at(i, c) + epsilon) *
                                  (grad.at(row, c) - sum / n - plain.output.at(row, c) * along / n);
      }
    }
  }
  return result;
}

Norm row_norm(const Matrix& x, const Matrix& weight, const Matrix& bias, double epsilon) {
  Norm norm{Matrix(x.rows, x.columns), Matrix(x.rows, 1), Matrix(x.rows, 1)};
  const auto n = static_cast<double>(x.columns);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < x.columns; ++c)
      norm.mean.at(r, 0) += x.at(r, c) / n;
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const double d = x.at(r, c) - norm.mean.at(r, 0);
      norm.variance.at(r, 0) += d * d / n;
    }
    for (std::int64_t c = 0; c < x.columns; ++c) {
      norm.output.at(r, c) = (x.at(r, c) - norm.mean.at(r, 0)) /
                                 std::sqrt(norm.variance.at(r, 0) + epsilon) * weight.at(0, c) +
                             bias.at(0, c);
    }
  }
  return norm;
}

NormGradient row_norm_gradient(const Matrix& x, const Matrix& grad, const Matrix& weight,
                               double epsilon) {
  const Norm plain = row_norm(x, Matrix(1, x.columns, 1), Matrix(1, x.columns), epsilon);
  NormGradient result{Matrix(x.rows, x.columns), Matrix(1, x.columns), Matrix(1, x.columns)};
  const auto n = static_cast<double>(x.columns);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    double sum = 0, along = 0;
    for (std::int64_t c = 0; c < x.columns; ++c) {
      sum += grad.at(r, c) * weight.at(0, c);
      along += grad.at(r, c) * weight.at(0, c) * plain.output.at(r, c);
      result.weight.at(0, c) += grad.at(r, c) * plain.output.at(r, c);
      result.bias.at(0, c) += grad.at(r, c);
    }
    for (std::int64_t c = 0; c < x.columns; ++c) {
      result.input.at(r, c) =
          (grad.at(r, c) * weight.at(0, c) - sum / n - plain.output.at(r, c) * along / n) /
          std::sqrt(plain.variance.at(r, 0) + epsilon);
    }
  }
  return result;
}

Matrix transpose(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < x.columns; ++c)
      y.at(c, r) = x.at(r, c);
  }
  return y;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, b.columns);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      for (std::int64_t c = 0; c < b.columns; ++c)
        y.at(r, c) += a.at(r, k) * b.at(k, c);
    }
  }
  return y;
}

Matrix elementwise(const Matrix& a, const Matrix& b, char operation) {
  Matrix y = a;
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const double other = b.values.at(i);
    y.values[i] = operation == '+'   ? y.values[i] + other
                  : operation == '-' ? y.values[i] - other
                                     : y.values[i] * other;
  }
  return y;
}

Matrix beside(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, a.columns + b.columns);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t c = 0; c < a.columns; ++c)
      y.at(r, c) = a.at(r, c);
    for (std::int64_t c = 0; c < b.columns; ++c)
      y.at(r, a.columns + c) = b.at(r, c);
  }
  return y;
}

Matrix columns(const Matrix& x, std::int64_t begin, std::int64_t end) {
  Matrix y(x.rows, end - begin);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = begin; c < end; ++c)
      y.at(r, c - begin) = x.at(r, c);
  }
  return y;
}

Matrix take(const Matrix& x, const Rows& rows) {
  Matrix y(static_cast<std::int64_t>(rows.size()), x.columns);
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const std::int64_t from = rows[static_cast<std::size_t>(r)];
    for (std::int64_t c = 0; c < x.columns && from >= 0; ++c)
      y.at(r, c) = x.at(from, c);
  }
  return y;
}

Matrix scatter(const Matrix& x, const Rows& rows, std::int64_t out_rows) {
  Matrix y(out_rows, x.columns);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const std::int64_t to = rows[static_cast<std::size_t>(r)];
    for (std::int64_t c = 0; c < x.columns && to >= 0; ++c)
      y.at(to, c) += x.at(r, c);
  }
  return y;
}

Matrix interpolate(const Matrix& x, const Sites& sites, const Matrix& points, bool renormalize) {
  const auto rows = rows_of(sites);
  const std::int64_t dimension = points.columns - 1;
  Matrix y(points.rows, x.columns);
  for (std::int64_t p = 0; p < points.rows; ++p) {
    double present = 0;
    for (std::int64_t corner = 0; corner < std::int64_t{1} << dimension; ++corner) {
      Site site{static_cast<int>(points.at(p, 0))};
      double weight = 1;
      for (std::int64_t axis = 0; axis < dimension; ++axis) {
        const double position = points.at(p, axis + 1);
        const int cell = static_cast<int>(std::floor(position)) + ((corner >> axis) & 1 ? 1 : 0);
        weight *= 1 - std::abs(position - cell);
        site.push_back(cell);
      }
      const auto found = rows.find(site);
      if (found == rows.end()) continue;
      present += weight;
      for (std::int64_t c = 0; c < x.columns; ++c)
        y.at(p, c) += weight * x.at(found->second, c);
    }
    for (std::int64_t c = 0; c < x.columns && renormalize && present > 0; ++c) {
      y.at(p, c) /= present;
    }
  }
  return y;
}

Matrix nearest(const Matrix& x, const Sites& sites, const Matrix& points) {
  const auto rows = rows_of(sites);
  Matrix y(points.rows, x.columns);
  for (std::int64_t p = 0; p < points.rows; ++p) {
    Site site{static_cast<int>(points.at(p, 0))};
    for (std::int64_t axis = 1; axis < points.columns; ++axis) {
      site.push_back(static_cast<int>(std::floor(points.at(p, axis) + 0.5)));
    }
    const auto found = rows.find(site);
    for (std::int64_t c = 0; c < x.columns && found != rows.end(); ++c) {
      y.at(p, c) = x.at(found->second, c);
    }
  }
  return y;
}

}   // namespace pumice::reference
