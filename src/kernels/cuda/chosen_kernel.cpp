// A table a thread, so that nobody waits for another's choice.
#include "kernels/cuda/chosen_kernel.hpp"

#include <cstddef>
#include <initializer_list>
#include <unordered_map>

#include "core/environment.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/tile_launch.hpp"

namespace pumice::cuda {
namespace {

std::size_t mixed(std::initializer_list<std::int64_t> numbers) {
  std::uint64_t hash = 0;
  for (const std::int64_t number : numbers)
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

struct Hash {
  std::size_t operator()(const TileProblem& problem) const {
    return mixed({static_cast<std::int64_t>(problem.operand),
                  static_cast<std::int64_t>(problem.gather), problem.in_channels,
                  problem.first_channels, problem.out_channels, problem.groups,
                  problem.shortcut_channels, problem.rows, problem.offsets});
  }
  std::size_t operator()(const GradientProblem& problem) const {
    return mixed({static_cast<std::int64_t>(problem.operand),
                  static_cast<std::int64_t>(problem.write), problem.in_channels,
                  problem.out_channels, problem.groups, problem.offsets});
  }
};

template <class Spec, class Problem, class Choose>
const ChosenKernel<Spec>& remember(const Problem& problem, Choose&& choose) {
  thread_local std::unordered_map<Problem, ChosenKernel<Spec>, Hash> chosen;
  const auto found = chosen.find(problem);
  if (found != chosen.end()) return found->second;
  const Spec spec = choose(problem);
  return chosen.emplace(problem, ChosenKernel<Spec>{spec, &source_of(spec)}).first->second;
}

}   // namespace

const ChosenKernel<TileSpec>& chosen_tile(TileProblem problem) {
  // All that the choice of a spec looks at.
  problem.rows = rounded_rows(problem.rows * environment::kernel_rows());
  return remember<TileSpec>(problem, [](const TileProblem& p) { return choose_tile(p).spec; });
}

const ChosenKernel<GradientSpec>& chosen_gradient(const GradientProblem& problem) {
  return remember<GradientSpec>(problem, choose_gradient);
}

}   // namespace pumice::cuda
