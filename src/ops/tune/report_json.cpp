// The same reports for machines.
#include <string>
#include <utility>

#include <pumice/ops/tune_network.hpp>

#include <nlohmann/json.hpp>

namespace pumice {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const tune::Estimate& estimate) {
  if (estimate.samples == 0) return nullptr;
  return {{"median", estimate.median},
          {"low", estimate.low},
          {"high", estimate.high},
          {"confidence", estimate.confidence},
          {"samples", estimate.samples}};
}

Json json_of(const tune::CandidateReport& candidate) {
  return {{"name", candidate.name},
          {"predicted", candidate.predicted},
          {"ratio", json_of(candidate.ratio)},
          {"verdict", tune::name_of(candidate.verdict)},
          {"reason", candidate.reason}};
}

/// A text of our own is JSON already; what comes from outside may hold any bytes.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::int64_t rows_of(const ConvolutionProblem& problem) {
  return problem.out_rows;
}
std::int64_t rows_of(const SparseProblem& problem) {
  return problem.rows;
}

template <class Tuned> Json json_of_tuned(const Tuned& layer, const tune::Result& result) {
  const tune::DecisionReport& decision = result.groups[layer.group].decisions[layer.decision];
  Json candidates = Json::array();
  for (const tune::CandidateReport& candidate : decision.candidates)
    candidates.push_back(json_of(candidate));
  return {{"problem", pumice::to_text(layer.problem)},
          {"rows", rows_of(layer.problem)},
          {"calls", layer.calls},
          {"group", layer.group},
          {"untuned", Json::parse(pumice::to_text(*layer.untuned))},
          {"untuned_name", layer.untuned->name()},
          {"plan", Json::parse(pumice::to_text(*layer.plan))},
          {"name", layer.plan->name()},
          {"reason", decision.reason},
          {"candidates", std::move(candidates)}};
}

template <class Call> Json json_of_explained(const Call& layer) {
  Json candidates = Json::array();
  for (const auto& one : layer.candidates) {
    candidates.push_back({{"name", one.plan->name()},
                          {"plan", Json::parse(pumice::to_text(*one.plan))},
                          {"predicted", one.predicted},
                          {"measured_s", one.measured_s ? Json(*one.measured_s) : Json(nullptr)},
                          {"refusal", one.refusal}});
  }
  return {{"problem", pumice::to_text(layer.problem)},
          {"rows", rows_of(layer.problem)},
          {"calls", layer.calls},
          {"name", layer.plan->name()},
          {"plan", Json::parse(pumice::to_text(*layer.plan))},
          {"reason", layer.plan->reason},
          {"is_stored", layer.stored.has_value()},
          {"candidates", std::move(candidates)}};
}

}   // namespace

std::string NetworkTuning::to_json() const {
  Json groups = Json::array();
  for (const tune::GroupReport& group : result.groups) {
    groups.push_back({{"name", group.name},
                      {"share", group.share},
                      {"verdict", tune::name_of(group.verdict)},
                      {"reason", group.reason},
                      {"untuned_s", json_of(group.untuned_s)},
                      {"tuned_s", json_of(group.tuned_s)},
                      {"ratio", json_of(group.ratio)}});
  }
  Json tuned = Json::array();
  for (const TunedLayer& layer : layers)
    tuned.push_back(json_of_tuned(layer, result));
  for (const TunedProduct& product : products)
    tuned.push_back(json_of_tuned(product, result));
  return text_of({{"used_s", result.used_s},
                  {"summary", result.summary},
                  {"untuned_s", json_of(result.untuned_s)},
                  {"tuned_s", json_of(result.tuned_s)},
                  {"ratio", json_of(result.ratio)},
                  {"stored", stored},
                  {"not_stored", not_stored},
                  {"groups", std::move(groups)},
                  {"layers", std::move(tuned)}});
}

std::string to_json(const ExplainedNetwork& network) {
  Json all = Json::array();
  for (const ExplainedLayer& layer : network.layers)
    all.push_back(json_of_explained(layer));
  for (const ExplainedProduct& product : network.products)
    all.push_back(json_of_explained(product));
  return text_of(all);
}

}   // namespace pumice
