// What a problem says of itself.
#include <pumice/plan/problem.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

#include "core/printable.hpp"
#include "plan/spec_names.hpp"

namespace pumice {
namespace {

constexpr std::array kDirections{Direction::forward, Direction::input_gradient,
                                 Direction::weight_gradient};

/// Takes a text apart from left to right.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text), left_(text) {}

  /// Whether `words` come next, which are taken then.
  bool take(std::string_view words) {
    const bool are_next =
        left_.starts_with(words) && (left_.size() == words.size() || left_[words.size()] == ' ');
    if (are_next) left_.remove_prefix(std::min(words.size() + 1, left_.size()));
    return are_next;
  }
  std::string_view word() {
    const std::string_view one = left_.substr(0, left_.find(' '));
    left_.remove_prefix(std::min(one.size() + 1, left_.size()));
    return one;
  }
  std::int64_t number() { return number_in(word()); }
  std::int64_t number_in(std::string_view word) {
    std::int64_t number = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    if (error != std::errc() || stop != end || number < 0) refuse();
    return number;
  }
  void end() {
    if (!left_.empty()) refuse();
  }
  [[noreturn]] void refuse() const {
    detail::raise_user("problem \"", printable(text_), "\" is none; give the text of one, as \"",
                       "forward f16 96>128 offsets 27\"");
  }

 private:
  std::string_view text_, left_;
};

}   // namespace

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
                                 problem.numerics.tf32 ? "tf32" : name_of(problem.dtype),
                                 problem.in_channels, problem.out_channels, problem.offsets);
  if (problem.groups > 1) text += fmt::format(" groups {}", problem.groups);
  if (problem.second_channels > 0) text += fmt::format(" second {}", problem.second_channels);
  if (problem.shortcut_channels > 0) {
    text += fmt::format(" shortcut {} of {}", problem.shortcut_channels,
                        problem.shortcut_channels - problem.shortcut_second_channels);
  }
  if (problem.identity) text += " identity";
  if (problem.numerics.deterministic) text += " deterministic";
  if (problem.activations == ActivationSet::all) text += " any activation";
  return text;
}

ConvolutionProblem parse_problem(std::string_view text) {
  Words words(text);
  ConvolutionProblem problem;
  const std::string_view direction = words.word();
  const auto* known = std::find_if(kDirections.begin(), kDirections.end(),
                                   [&](Direction one) { return name_of(one) == direction; });
  if (known == kDirections.end()) words.refuse();
  problem.direction = *known;
  const std::string_view type = words.word();
  problem.numerics.tf32 = type == "tf32";
  if (!problem.numerics.tf32) problem.dtype = parse_dtype(type);
  const std::string_view channels = words.word();
  const std::size_t arrow = channels.find('>');
  if (arrow == std::string_view::npos) words.refuse();
  problem.in_channels = words.number_in(channels.substr(0, arrow));
  problem.out_channels = words.number_in(channels.substr(arrow + 1));
  if (!words.take("offsets")) words.refuse();
  problem.offsets = words.number();
  if (words.take("groups")) problem.groups = words.number();
  if (words.take("second")) problem.second_channels = words.number();
  if (words.take("shortcut")) {
    problem.shortcut_channels = words.number();
    if (!words.take("of")) words.refuse();
    problem.shortcut_second_channels = problem.shortcut_channels - words.number();
  }
  problem.identity = words.take("identity");
  problem.numerics.deterministic = words.take("deterministic");
  if (words.take("any activation")) problem.activations = ActivationSet::all;
  words.end();
  return problem;
}

}   // namespace pumice
