// How well the classes that a network found agree with labels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pumice/nn/model_card.hpp>

namespace pumice::cli {

/// Points whose label no class stands for, and points in no voxel, do not count.
struct ClassAgreement {
  std::string name;
  std::int64_t labelled = 0;   // points whose label says this class
  std::int64_t found = 0;      // points for which the network says it
  std::int64_t right = 0;      // both

  /// Intersection over union; 0 where neither says this class.
  double iou() const;
};

struct Agreement {
  std::vector<ClassAgreement> classes;   // all of them
  std::int64_t points = 0;               // that count
  std::int64_t right = 0;

  std::int64_t labelled_classes() const;
  double accuracy() const;
  /// Over the classes that some label says.
  double mean_iou() const;
  /// Counts those of another scan too; its classes are the same.
  void add(const Agreement& other);
};

/// The class that each of `labels` stands for, -1 where there is none. Empty where the card does
/// not say which labels its classes stand for, or none of these does.
std::vector<std::int32_t> true_classes(const nn::ModelCard& card,
                                       std::span<const std::int32_t> labels);

/// `found` (a class, or -1 in no voxel) and `truth` (as true_classes gives it) have an entry a
/// point. Nothing where no point counts.
std::optional<Agreement> compare(const nn::ModelCard& card, std::span<const std::int32_t> found,
                                 std::span<const std::int32_t> truth);

/// A line a class, the most frequent first, and the mean.
std::string agreement_table(const Agreement& agreement);
/// {points, accuracy, mean_iou, classes: [{name, labelled, found, right, iou}]}
nlohmann::ordered_json to_json(const Agreement& agreement);

}   // namespace pumice::cli
