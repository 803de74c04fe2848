// Cross entropy as it is written down, in float64.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/reference_ops.hpp"

namespace pumice::test {

struct EntropyReference {
  double loss = 0;
  double weight = 0;
  reference::Matrix gradient;   // of the loss
};

/// `weight`: one for each class.
inline EntropyReference reference_entropy(const reference::Matrix& scores,
                                          const std::vector<std::int64_t>& labels,
                                          const std::vector<double>& weight, std::int64_t ignored,
                                          double smoothing) {
  const std::int64_t classes = scores.columns;
  EntropyReference result{.gradient = reference::Matrix(scores.rows, classes)};
  double sum = 0;
  for (std::int64_t row = 0; row < scores.rows; ++row) {
    const std::int64_t label = labels[static_cast<std::size_t>(row)];
    if (label == ignored) continue;
    double total = 0;
    for (std::int64_t c = 0; c < classes; ++c)
      total += std::exp(scores.at(row, c) - scores.at(row, label));
    const double log_sum = std::log(total) + scores.at(row, label);
    for (std::int64_t c = 0; c < classes; ++c) {   // what is expected of each class
      const double of_all = smoothing / static_cast<double>(classes);
      const double share =
          weight[static_cast<std::size_t>(c)] * ((c == label ? 1 - smoothing : 0) + of_all);
      sum += share * (log_sum - scores.at(row, c));
      for (std::int64_t k = 0; k < classes; ++k) {
        const double chance = std::exp(scores.at(row, k) - log_sum);
        result.gradient.at(row, k) += share * (chance - (k == c ? 1 : 0));
      }
    }
    result.weight += weight[static_cast<std::size_t>(label)];
  }
  result.loss = sum / result.weight;
  for (double& value : result.gradient.values)
    value /= result.weight;
  return result;
}

}   // namespace pumice::test
