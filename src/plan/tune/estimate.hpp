// Medians of noisy samples, and how far they can be trusted.
#pragma once

#include <vector>

#include <pumice/plan/tuner.hpp>

namespace pumice::tune {

/// 0 without samples; of an even number the mean of the two in the middle.
double median_of(std::vector<double> samples);

/// The chance that a fair coin shows heads at most `heads` times in `tosses`.
double coin_tail(int tosses, int heads);

/// The median with the narrowest symmetric pair of order statistics that holds the true one with at
/// least `confidence`; where samples are too few for that, the smallest and the largest, with the
/// confidence that they give.
Estimate estimate_median(std::vector<double> samples, double confidence);

/// a[i] / b[i] for as many as both have.
std::vector<double> paired_ratios(const std::vector<double>& a, const std::vector<double>& b);

}   // namespace pumice::tune
