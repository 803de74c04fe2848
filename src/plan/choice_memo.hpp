// What was chosen before for a device, in one table of the process, and what was measured.
#pragma once

#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include <pumice/plan/choose.hpp>

namespace pumice {

/// What a choice is remembered by.
struct ChoiceKey {
  ConvolutionProblem problem;
  DeviceKind kind;
  std::uint32_t architecture;
  std::int32_t multiprocessors;
  std::optional<Dataflow> wanted;
  std::string device{};   // its name, of what was measured there; rules go by the numbers

  friend bool operator==(const ChoiceKey&, const ChoiceKey&) = default;
};

ChoiceKey choice_key(const ConvolutionProblem& problem, const Target& target,
                     std::optional<Dataflow> wanted = std::nullopt);

/// A table behind a lock that readers share: 30 ns a look.
class ChoiceMemo {
 public:
  /// Nothing: not known. Null: known to be none.
  std::optional<PlanPtr> find(const ChoiceKey& key) const;
  /// Keeps `made`, unless another thread was faster; returns what is kept.
  PlanPtr keep(const ChoiceKey& key, PlanPtr made);
  void clear();

 private:
  struct Hash {
    std::size_t operator()(const ChoiceKey& key) const;
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<ChoiceKey, PlanPtr, Hash> choices_;
};

/// The part of a problem that a choice for a device looks at. The same choice for the same rounded
/// number of rows means that every kernel can be known ahead (kernels_for).
ConvolutionProblem as_chosen(ConvolutionProblem problem);

/// Of the rules, for devices.
ChoiceMemo& rule_memo();

}   // namespace pumice
