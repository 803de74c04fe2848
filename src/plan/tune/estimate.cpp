// The interval of a sign test: it assumes nothing of the noise but that samples are independent,
// so that outliers of ten times the median move it no more than any other sample does.
#include "plan/tune/estimate.hpp"

#include <algorithm>
#include <cmath>

namespace pumice::tune {

double median_of(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double coin_tail(int tosses, int heads) {
  double chance = 0;
  for (int k = 0; k <= std::min(heads, tosses); ++k) {
    chance += std::exp(std::lgamma(tosses + 1.0) - std::lgamma(k + 1.0) -
                       std::lgamma(tosses - k + 1.0) - tosses * std::log(2.0));
  }
  return chance;
}

Estimate estimate_median(std::vector<double> samples, double confidence) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const int count = static_cast<int>(samples.size());
  // Of independent samples, the number below the true median is that of heads in as many tosses:
  // the interval that leaves out `outside` at each end misses it with twice that tail.
  int outside = 0;
  while (2 * (outside + 1) < count && 2 * coin_tail(count, outside + 1) <= 1 - confidence)
    ++outside;
  return {.median = median_of(samples),
          .low = samples[static_cast<std::size_t>(outside)],
          .high = samples[static_cast<std::size_t>(count - 1 - outside)],
          .confidence = std::max(0.0, 1 - 2 * coin_tail(count, outside)),
          .samples = count};
}

std::vector<double> paired_ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios(std::min(a.size(), b.size()));
  for (std::size_t i = 0; i < ratios.size(); ++i)
    ratios[i] = a[i] / b[i];
  return ratios;
}

}   // namespace pumice::tune
