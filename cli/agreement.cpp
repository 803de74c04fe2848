// Counts of points by class.
#include "agreement.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

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

std::optional<Agreement> compare(const nn::ModelCard& card, std::span<const std::int32_t> found,
                                 std::span<const std::int32_t> labels) {
  PUMICE_ENSURES(found.size() == labels.size(), found.size(), " classes for ", labels.size(),
                 " labels");
  if (card.labels.empty()) return std::nullopt;
  std::unordered_map<std::int32_t, std::int32_t> known;   // label: class
  Agreement result;
  for (std::size_t i = 0; i < card.classes.size(); ++i) {
    result.classes.push_back({.name = card.classes[i]});
    for (const std::int32_t label : card.labels[i])
      known[label] = static_cast<std::int32_t>(i);
  }
  for (std::size_t point = 0; point < found.size(); ++point) {
    const auto truth = known.find(labels[point]);
    if (truth == known.end() || found[point] < 0) continue;
    const bool right = truth->second == found[point];
    ++result.points;
    result.right += right ? 1 : 0;
    ClassAgreement& labelled = result.classes[static_cast<std::size_t>(truth->second)];
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
