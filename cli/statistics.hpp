// Numbers about measured times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pumice::cli {

/// The middle of at least one value; of an even number of them, the mean of the two in the middle.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}   // namespace pumice::cli
