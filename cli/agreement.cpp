// Counts of points by class.
#include "agreement.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

constexpr std::size_t kNameColumns = 40;   // of a class in a table

}   // namespace

double ClassAgreement::iou() const {
  const std::int64_t either = labelled + found - right;
  return either == 0 ? 0 : static_cast<double>(right) / static_cast<double>(either);
}

std::int64_t Agreement::labelled_classes() const {
  return std::ranges::count_if(classes, [](const ClassAgreement& c) { return c.labelled > 0; });
}

double Agreement::accuracy() const {
  return points == 0 ? 0 : static_cast<double>(right) / static_cast<double>(points);
}

double Agreement::mean_iou() const {
  double sum = 0;
  for (const ClassAgreement& c : classes)
    sum += c.labelled > 0 ? c.iou() : 0;
  return labelled_classes() == 0 ? 0 : sum / static_cast<double>(labelled_classes());
}

void Agreement::add(const Agreement& other) {
  if (classes.empty()) classes.resize(other.classes.size());
  PUMICE_ENSURES(classes.size() == other.classes.size(), classes.size(), " and ",
                 other.classes.size(), " classes");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    classes[i].name = other.classes[i].name;
    classes[i].labelled += other.classes[i].labelled;
    classes[i].found += other.classes[i].found;
    classes[i].right += other.classes[i].right;
  }
  points += other.points;
  right += other.right;
}

std::vector<std::int32_t> true_classes(const nn::ModelCard& card,
                                       std::span<const std::int32_t> labels) {
  std::unordered_map<std::int32_t, std::int32_t> known;   // label: class
  for (std::size_t i = 0; i < card.labels.size(); ++i) {
    for (const std::int32_t label : card.labels[i])
      known[label] = static_cast<std::int32_t>(i);
  }
  std::vector<std::int32_t> result(labels.size(), -1);
  bool any = false;
  for (std::size_t point = 0; point < labels.size(); ++point) {
    const auto truth = known.find(labels[point]);
    if (truth == known.end()) continue;
    result[point] = truth->second;
    any = true;
  }
  if (!any) result.clear();
  return result;
}

std::optional<Agreement> compare(const nn::ModelCard& card, std::span<const std::int32_t> found,
                                 std::span<const std::int32_t> truth) {
  if (truth.empty()) return std::nullopt;
  PUMICE_ENSURES(found.size() == truth.size(), found.size(), " classes for ", truth.size(),
                 " labels");
  Agreement result;
  for (const std::string& name : card.classes)
    result.classes.push_back({.name = name});
  for (std::size_t point = 0; point < found.size(); ++point) {
    if (truth[point] < 0 || found[point] < 0) continue;
    const bool right = truth[point] == found[point];
    ++result.points;
    result.right += right ? 1 : 0;
    ClassAgreement& labelled = result.classes.at(static_cast<std::size_t>(truth[point]));
    ++labelled.labelled;
    labelled.right += right ? 1 : 0;
    ++result.classes.at(static_cast<std::size_t>(found[point])).found;
  }
  if (result.points == 0) return std::nullopt;
  return result;
}

std::string agreement_table(const Agreement& agreement) {
  std::vector<ClassAgreement> classes = agreement.classes;
  std::erase_if(classes, [](const ClassAgreement& c) { return c.labelled == 0; });
  std::ranges::stable_sort(classes, std::ranges::greater{}, &ClassAgreement::labelled);
  Table table({"<class", "points", "right", "IoU"});
  const auto part = [](std::int64_t of, std::int64_t all) {
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(of) / static_cast<double>(all));
  };
  for (const ClassAgreement& c : classes) {
    table.add({printable(c.name, kNameColumns), with_commas(c.labelled), part(c.right, c.labelled),
               fmt::format("{:.3f}", c.iou())});
  }
  table.add_rule();
  table.add({"all", with_commas(agreement.points), part(agreement.right, agreement.points),
             fmt::format("{:.3f}", agreement.mean_iou())});
  return table.text();
}

nlohmann::ordered_json to_json(const Agreement& agreement) {
  auto classes = nlohmann::ordered_json::array();
  for (const ClassAgreement& c : agreement.classes) {
    classes.push_back({{"name", c.name},
                       {"labelled", c.labelled},
                       {"found", c.found},
                       {"right", c.right},
                       {"iou", c.iou()}});
  }
  return {{"points", agreement.points},
          {"accuracy", agreement.accuracy()},
          {"mean_iou", agreement.mean_iou()},
          {"classes", classes}};
}

}   // namespace pumice::cli
