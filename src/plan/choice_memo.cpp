// One table behind a lock that readers share: 30 ns a look.
#include "plan/choice_memo.hpp"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "plan/space/tile_table.hpp"

namespace pumice {
namespace {

struct Key {
  ConvolutionProblem problem;
  std::uint32_t architecture;
  std::int32_t multiprocessors;
  std::optional<Dataflow> wanted;

  friend bool operator==(const Key&, const Key&) = default;
};

Key key_of(const ConvolutionProblem& problem, const Target& target,
           std::optional<Dataflow> wanted) {
  return {problem, target.architecture, target.multiprocessors, wanted};
}

struct Hash {
  std::size_t operator()(const Key& key) const {
    const ConvolutionProblem& p = key.problem;
    const std::uint64_t words[] = {
        static_cast<std::uint64_t>(p.out_rows),
        static_cast<std::uint64_t>(p.in_channels << 32 | p.out_channels),
        static_cast<std::uint64_t>(p.groups << 32 | p.offsets),
        static_cast<std::uint64_t>(p.second_channels << 32 | p.shortcut_channels),
        static_cast<std::uint64_t>(p.direction) | static_cast<std::uint64_t>(p.dtype) << 8 |
            static_cast<std::uint64_t>(p.tf32) << 16 |
            static_cast<std::uint64_t>(p.deterministic) << 17 |
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
};

struct Memo {
  std::shared_mutex mutex;
  std::unordered_map<Key, PlanPtr, Hash> choices;
};

Memo& memo() {
  static auto& table = *new Memo;
  return table;
}

}   // namespace

ConvolutionProblem as_chosen(ConvolutionProblem problem) {
  const bool is_product = problem.direction != Direction::weight_gradient;
  problem.in_rows = 0;
  problem.pairs = 0;
  problem.out_rows = is_product ? cuda::rounded_rows(problem.out_rows) : 0;
  return problem;
}

PlanPtr known_choice(const ConvolutionProblem& problem, const Target& target,
                     std::optional<Dataflow> wanted) {
  Memo& known = memo();
  const std::shared_lock lock(known.mutex);
  const auto found = known.choices.find(key_of(problem, target, wanted));
  return found == known.choices.end() ? nullptr : found->second;
}

PlanPtr keep_choice(const ConvolutionProblem& problem, const Target& target,
                    std::optional<Dataflow> wanted, PlanPtr made) {
  Memo& known = memo();
  const std::unique_lock lock(known.mutex);
  return known.choices.emplace(key_of(problem, target, wanted), std::move(made)).first->second;
}

void forget_choices() {
  const std::unique_lock lock(memo().mutex);
  memo().choices.clear();
}

}   // namespace pumice
