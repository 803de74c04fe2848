// Keys of choices, and the table.
#include "plan/choice_memo.hpp"

#include <mutex>
#include <utility>

#include "plan/space/tile_table.hpp"

namespace pumice {

ChoiceKey choice_key(const ConvolutionProblem& problem, const Target& target,
                     std::optional<Dataflow> wanted) {
  return {problem, target.kind, target.architecture, target.multiprocessors, wanted};
}

std::size_t ChoiceMemo::Hash::operator()(const ChoiceKey& key) const {
  const ConvolutionProblem& p = key.problem;
  const std::uint64_t words[] = {
      static_cast<std::uint64_t>(p.out_rows),
      static_cast<std::uint64_t>(p.pairs),
      static_cast<std::uint64_t>(p.in_channels << 32 | p.out_channels),
      static_cast<std::uint64_t>(p.groups << 32 | p.offsets),
      static_cast<std::uint64_t>(p.second_channels << 32 | p.shortcut_channels),
      static_cast<std::uint64_t>(p.direction) | static_cast<std::uint64_t>(p.dtype) << 8 |
          static_cast<std::uint64_t>(p.numerics.tf32) << 16 |
          static_cast<std::uint64_t>(p.numerics.deterministic) << 17 |
          static_cast<std::uint64_t>(p.identity) << 18 |
          static_cast<std::uint64_t>(key.wanted ? static_cast<int>(*key.wanted) + 1 : 0) << 20 |
          static_cast<std::uint64_t>(key.architecture) << 32};
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

std::optional<PlanPtr> ChoiceMemo::find(const ChoiceKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

PlanPtr ChoiceMemo::keep(const ChoiceKey& key, PlanPtr made) {
  const std::unique_lock lock(mutex_);
  return choices_.emplace(key, std::move(made)).first->second;
}

void ChoiceMemo::clear() {
  const std::unique_lock lock(mutex_);
  choices_.clear();
}

ConvolutionProblem as_chosen(ConvolutionProblem problem) {
  problem.in_rows = 0;
  problem.pairs = 0;
  problem.out_rows = cuda::rounded_rows(problem.out_rows);
  return problem;
}

ChoiceMemo& rule_memo() {
  static auto& memo = *new ChoiceMemo;
  return memo;
}

}   // namespace pumice
