// What tuning and explaining found, in tables of words.
#include <algorithm>
#include <string>

#include <pumice/ops/tune_network.hpp>

#include <fmt/format.h>

namespace pumice {
namespace {

std::string words_of_time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", 1e6 * seconds)
                        : fmt::format("{:.2f} ms", 1e3 * seconds);
}

std::string row_of(const tune::GroupReport& group) {
  const bool has_gain = group.verdict == tune::Verdict::accepted && group.tuned_s.samples > 0;
  const bool is_known = group.untuned_s.samples > 0;
  return fmt::format("  {:>6}  {:>10}  {:>10}  {:<14}  {}\n",
                     is_known ? fmt::format("{:.0f} %", 100 * group.share) : "-",
                     is_known ? words_of_time(group.untuned_s.median) : "-",
                     has_gain   ? words_of_time(group.tuned_s.median)
                     : is_known ? "same"
                                : "-",
                     tune::name_of(group.verdict), group.name);
}

/// "0.92 times the predicted first", for the candidates of one layer or product.
template <class Plan, class Call> std::string row_of(const PlanCost<Plan>& one, const Call& layer) {
  const std::string measured = one.measured_s        ? words_of_time(*one.measured_s)
                               : one.refusal.empty() ? ""
                                                     : "refused: " + one.refusal;
  const std::string predicted =
      one.predicted > 0 ? fmt::format("{:.2f}", one.predicted) : std::string("-");
  return fmt::format("  {} {:<58} {:>9}  {}\n", one.plan->runs_like(*layer.plan) ? '*' : ' ',
                     one.plan->name(), predicted, measured);
}

std::int64_t rows_of(const ConvolutionProblem& problem) {
  return problem.out_rows;
}
std::int64_t rows_of(const SparseProblem& problem) {
  return problem.rows;
}

template <class Call> std::string text_of(const Call& layer) {
  std::string text =
      fmt::format("{}, {} rows{}\n  {}: {}\n", to_text(layer.problem), rows_of(layer.problem),
                  layer.calls > 1 ? fmt::format(", {} times", layer.calls) : "", layer.plan->name(),
                  layer.plan->reason);
  text += fmt::format("    {:<58} {:>9}  {}\n", "candidate", "predicted", "measured");
  for (const auto& one : layer.candidates)
    text += row_of(one, layer);
  return text + "\n";
}

/// What changed; empty where nothing did.
template <class Tuned> std::string change_of(const Tuned& layer, const tune::Result& result) {
  if (layer.plan->runs_like(*layer.untuned)) return {};
  const tune::DecisionReport& decision = result.groups[layer.group].decisions[layer.decision];
  return fmt::format("\n{}\n  was {}\n  is  {}\n  {}\n", decision.name, layer.untuned->name(),
                     layer.plan->name(), decision.reason);
}

}   // namespace

std::string NetworkTuning::to_text() const {
  std::string text = "  share     untuned       tuned  verdict         layers\n";
  std::vector<const tune::GroupReport*> order;
  for (const tune::GroupReport& group : result.groups)
    order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->share > b->share; });
  for (const tune::GroupReport* group : order)
    text += row_of(*group);
  for (const TunedLayer& layer : layers)
    text += change_of(layer, result);
  for (const TunedProduct& product : products)
    text += change_of(product, result);
  text += "\n" + result.summary + "\n";
  if (stored > 0) text += fmt::format("Plans stored: {}.\n", stored);
  if (!not_stored.empty()) text += "No plans are stored: " + not_stored + ".\n";
  return text;
}

std::string to_text(const ExplainedNetwork& network) {
  std::string text;
  for (const ExplainedLayer& layer : network.layers)
    text += text_of(layer);
  for (const ExplainedProduct& product : network.products)
    text += text_of(product);
  return text;
}

}   // namespace pumice
