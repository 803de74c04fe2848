// What a problem says of itself.
#include <pumice/plan/problem.hpp>

#include <algorithm>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

#include "plan/spec_names.hpp"

namespace pumice {

std::string_view name_of(Direction direction) {
  switch (direction) {
    case Direction::forward: return "forward";
    case Direction::input_gradient: return "input_gradient";
    case Direction::weight_gradient: return "weight_gradient";
  }
  PUMICE_ENSURES(false, "direction ", static_cast<int>(direction));
  return {};
}

double ConvolutionProblem::flop() const {
  const auto out = static_cast<double>(out_channels);
  const double of_pairs = static_cast<double>(pairs) * static_cast<double>(in_channels) /
                          static_cast<double>(std::max<std::int64_t>(groups, 1));
  const double of_shortcut = static_cast<double>(out_rows) * static_cast<double>(shortcut_channels);
  return 2.0 * (of_pairs + of_shortcut) * out;
}

double ConvolutionProblem::fullness() const {
  const double entries = static_cast<double>(out_rows) * static_cast<double>(offsets);
  return entries == 0 ? 0 : static_cast<double>(pairs) / entries;
}

std::string to_text(const ConvolutionProblem& problem) {
  std::string text = fmt::format("{} {} {}>{} offsets {}", name_of(problem.direction),
                                 problem.tf32 ? "tf32" : name_of(problem.dtype),
                                 problem.in_channels, problem.out_channels, problem.offsets);
  if (problem.groups > 1) text += fmt::format(" groups {}", problem.groups);
  if (problem.second_channels > 0) text += fmt::format(" second {}", problem.second_channels);
  if (problem.shortcut_channels > 0) {
    text += fmt::format(" shortcut {} of {}", problem.shortcut_channels,
                        problem.shortcut_channels - problem.shortcut_second_channels);
  }
  if (problem.identity) text += " identity";
  if (problem.deterministic) text += " deterministic";
  if (problem.activations == ActivationSet::all) text += " any activation";
  return text;
}

}   // namespace pumice
