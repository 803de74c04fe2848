// Calls the stopwatch; what it throws becomes the sentence of a refusal, for the report.
#include "plan/tune/sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include <pumice/core/error.hpp>

namespace pumice::tune {
namespace {

double clock_s(const Options& options) {
  if (options.now_s) return options.now_s();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}   // namespace

Sampler::Sampler(const Measuring& measuring, const Options& options)
    : measuring_(measuring),
      options_(options),
      began_s_(clock_s(options)),
      limit_s_(options.budget_s) {}

double Sampler::used_s() const {
  return clock_s(options_) - began_s_;
}

bool Sampler::goes_on() {
  Stop now = used_s() >= limit_s_ ? Stop::out_of_budget : Stop::finished;
  if (stopped_ == Stop::cancelled || (options_.is_cancelled && options_.is_cancelled()))
    now = Stop::cancelled;
  stopped_ = std::max(stopped_, now);
  return now == Stop::finished;
}

Sample Sampler::take(const std::function<double()>& measure) {
  if (!goes_on()) return {};
  double seconds = 0;
  try {
    seconds = measure();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return {.refusal = text.empty() ? "it threw an exception without a text" : text};
  }
  if (std::isfinite(seconds) && seconds > 0) return {.seconds = seconds};
  return {.refusal = detail::concatenate("it was measured as ", seconds,
                                         " s, and a time is a positive number of seconds")};
}

Sample Sampler::of_group(std::size_t group, const Choice& choice, int round) {
  return take([&] { return measuring_.group(group, choice, round); });
}

Sample Sampler::of_network(const Assignment& assignment, int round) {
  return take([&] { return measuring_.network(assignment, round); });
}

void Sampler::report(double fraction, const std::string& text) {
  reported_ = std::clamp(fraction, reported_, 1.0);
  if (options_.progress) options_.progress(reported_, text);
}

}   // namespace pumice::tune
