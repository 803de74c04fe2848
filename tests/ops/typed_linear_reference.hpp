// Linear layers of typed rows in float64, by loops.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/formats/typed_rows.hpp>
#include <pumice/ops/typed_linear.hpp>

#include "kernels/problem.hpp"

namespace pumice::test {

struct TypedProblem {
  TypedProblem(std::vector<std::int64_t> bounds, std::int64_t in, std::int64_t out, DType type)
      : begin(std::move(bounds)),
        rows(begin.back()),
        types(static_cast<std::int64_t>(begin.size()) - 1),
        in_channels(in),
        out_channels(out),
        x(random_tensor({rows, in}, type, 1)),
        weight(random_tensor({types, in, out}, type, 2)),
        grad(random_tensor({rows, out}, type, 3)) {
    const Tensor wide_x = x.to(DType::f64), w = weight.to(DType::f64), g = grad.to(DType::f64);
    output = Tensor::zeros({rows, out}, DType::f64);
    of_x = Tensor::zeros({rows, in}, DType::f64);
    of_weight = Tensor::zeros({types, in, out}, DType::f64);
    for (std::int64_t t = 0; t < types; ++t) {
      for (std::int64_t r = begin[static_cast<std::size_t>(t)];
           r < begin[static_cast<std::size_t>(t) + 1]; ++r) {
        for (std::int64_t i = 0; i < in; ++i) {
          for (std::int64_t o = 0; o < out; ++o) {
            const std::int64_t at = (t * in + i) * out + o;
            output.data<double>()[r * out + o] +=
                wide_x.data<double>()[r * in + i] * w.data<double>()[at];
            of_x.data<double>()[r * in + i] += g.data<double>()[r * out + o] * w.data<double>()[at];
            of_weight.data<double>()[at] +=
                wide_x.data<double>()[r * in + i] * g.data<double>()[r * out + o];
          }
        }
      }
    }
  }

  std::vector<std::int64_t> begin;
  std::int64_t rows, types, in_channels, out_channels;
  Tensor x, weight, grad;
  Tensor output, of_x, of_weight;   // f64
};

/// Types without rows at either end and in between, of one row, of more than a tile.
inline std::vector<std::vector<std::int64_t>> typed_bounds() {
  std::vector<std::vector<std::int64_t>> all{
      {0}, {0, 0}, {0, 1}, {0, 31}, {0, 0, 0, 33, 33}, {0, 1, 2, 3, 300, 300, 700}};
  std::vector<std::int64_t> many{0};
  for (int type = 0; type < 90; ++type)
    many.push_back(many.back() + type % 7);
  all.push_back(many);
  all.push_back({0, 225, 450, 675, 896, 896, 896});   // an odd number of bounds
  return all;
}

}   // namespace pumice::test
