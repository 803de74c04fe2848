// What the links of a chain learn and keep, of any widths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/nn/chain.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn::test {

/// Random numbers in f32, the same each time; `weights` [K, in, out], one of each link.
struct ChainOperands {
  ChainOperands(std::span<const Shape> weights, StreamView stream) {
    for (std::uint64_t i = 0; i < weights.size(); ++i) {
      const Shape& weight = weights[i];
      const auto there = [&](const Shape& shape, std::uint64_t seed) {
        return copy_to(stream, random_tensor(shape, DType::f32, 10 * i + seed));
      };
      owned.push_back(there(weight, 1));
      for (std::uint64_t seed = 2; seed < 6; ++seed)
        owned.push_back(there({weight[2]}, seed));
      owned.push_back(Tensor::zeros({1}, DType::i64, stream));
    }
    for (std::size_t i = 0; i < owned.size(); i += 6) {
      parameters.push_back({owned[i], owned[i + 1], owned[i + 2]});
      running.push_back({owned[i + 3].view(), owned[i + 4].view(), owned[i + 5].view()});
    }
  }
  std::vector<Tensor> owned;   // of each link weight, scale, shift, mean, variance, batches
  std::vector<LinkParameters> parameters;
  std::vector<RunningStatistics> running;
};

}   // namespace pumice::nn::test
