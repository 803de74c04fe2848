// Events on a device, a steady clock on the CPU.
#include "ops/tune/group_stopwatch.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

namespace pumice {
namespace {

constexpr std::int64_t kCaches = 4;       // what is filled, in parts of the L2
constexpr double kFillBytesPerS = 4e12;   // no device fills faster: H200 3.9e12
constexpr double kLaunchS = 6e-6;         // of the host, for one launch
constexpr std::size_t kLaunchesOfCall = 2;
constexpr std::size_t kLaunchesOfCut = 12;

bool are_of_inference(const std::vector<OperatorCall>& calls) {
  return std::all_of(calls.begin(), calls.end(), [](const OperatorCall& call) {
    return call.problem.direction == Direction::forward;
  });
}

}   // namespace

GroupStopwatch::GroupStopwatch(const RecordedPasses& recorded, const NetworkGroups& network,
                               StreamView stream, bool cuts_too)
    : calls_(recorded.calls),
      sparse_calls_(recorded.sparse),
      network_(network),
      stream_(stream),
      cuts_too_(cuts_too),
      // On a device weights of a training step are packed for all layers at once, in a launch
      // that plans hardly change.
      keeps_weights_(stream.device.kind == DeviceKind::cuda || are_of_inference(calls_.front())),
      tensors_(stream) {
  for (const auto& of_scan : calls_)
    replayed_.emplace_back(of_scan.size());
  for (const auto& of_scan : sparse_calls_)
    replayed_sparse_.emplace_back(of_scan.size());
  if (stream.device.kind == DeviceKind::cuda)
    filler_ = Buffer<std::byte>(kCaches * target_of(stream.device).l2_bytes, stream);
}

ReplayedCall& GroupStopwatch::replayed(int scan, std::size_t call) {
  const auto number = static_cast<std::size_t>(scan);
  auto& made = replayed_[number][call];
  if (made == nullptr)
    made = std::make_unique<ReplayedCall>(calls_[number][call], tensors_, keeps_weights_);
  return *made;
}

SparseReplay& GroupStopwatch::replayed_sparse(int scan, std::size_t call) {
  const auto number = static_cast<std::size_t>(scan);
  auto& made = replayed_sparse_[number][call];
  if (made != nullptr) return *made;
  const std::vector<SparseCall>& calls = sparse_calls_[number];
  const Target& target = target_of(stream_.device);
  std::size_t with_pattern = call;
  const tune::PlanKey key = key_of(calls[call].problem, target);
  while (calls[with_pattern].pattern == nullptr ||
         key_of(calls[with_pattern].problem, target) != key)
    --with_pattern;   // the first of the key has one
  made = std::make_unique<SparseReplay>(calls[with_pattern].problem, calls[with_pattern].pattern,
                                        tensors_);
  return *made;
}

void GroupStopwatch::keep_busy(std::size_t launches) {
  const double fill_s = static_cast<double>(filler_.size()) / kFillBytesPerS;
  const auto fills = static_cast<int>(static_cast<double>(launches) * kLaunchS / fill_s) + 1;
  for (int i = 0; i < fills; ++i)
    fill_bytes_async(filler_.data(), std::byte{0}, static_cast<std::size_t>(filler_.size()),
                     stream_);
}

template <class Work> double GroupStopwatch::time(std::size_t launches, Work&& work) {
  if (stream_.device.kind == DeviceKind::cpu) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  Event start(stream_.device, true), stop(stream_.device, true);
  keep_busy(launches);
  start.record(stream_);
  work();
  stop.record(stream_);
  wait(stream_);
  return 1e-3 * milliseconds_between(start, stop);
}

/// One call of each decision, since nothing is shared between calls.
double GroupStopwatch::of_decisions(const NetworkGroup& group, const tune::Choice& choice,
                                    int scan) {
  double seconds = 0;
  for (std::size_t i = 0; i < group.decisions.size(); ++i) {
    const NetworkDecision& decision = group.decisions[i];
    ReplayedCall& call = replayed(scan, decision.calls.front());
    const double once =
        time(1, [&] { call.run(*decision.plans[choice[i]], call.call().map.get()); });
    seconds += once * static_cast<double>(decision.calls.size());
  }
  return seconds;
}

double GroupStopwatch::of_group(std::size_t group, const tune::Choice& choice, int scan) {
  if (group >= network_.own.size()) {
    const SparseDecision& decision = network_.sparse[group - network_.own.size()];
    return static_cast<double>(decision.calls.size()) *
           of_sparse_call(decision.calls.front(), *decision.plans[choice.front()], scan);
  }
  if (stream_.device.kind == DeviceKind::cpu)
    return of_decisions(network_.own[group], choice, scan);
  const NetworkGroup& own = network_.own[group];
  const auto& calls = calls_[static_cast<std::size_t>(scan)];
  struct Step {
    ReplayedCall* call;
    const ConvolutionPlan* plan;
  };
  std::map<std::size_t, Step> steps;               // in the order of the pass
  std::map<const KernelMap*, KernelMapPtr> maps;   // of which nothing is cut
  for (std::size_t i = 0; i < own.decisions.size(); ++i) {
    for (const std::size_t call : own.decisions[i].calls) {
      steps.emplace(call, Step{&replayed(scan, call), own.decisions[i].plans[choice[i]].get()});
      if (!cuts_too_ || calls[call].map == nullptr) continue;
      KernelMapPtr& map = maps[calls[call].map.get()];
      if (map == nullptr) map = uncut(calls[call].map);
    }
  }
  const auto map_of = [&](std::size_t call) -> const KernelMap* {
    const KernelMap* const map = calls[call].map.get();   // null: of a linear layer
    const auto found = maps.find(map);
    return found == maps.end() ? map : found->second.get();
  };
  return time(steps.size() * kLaunchesOfCall + maps.size() * kLaunchesOfCut, [&] {
    for (const auto& [number, step] : steps)
      step.call->run(*step.plan, map_of(number));
  });
}

double GroupStopwatch::of_sparse_call(std::size_t call, const SparsePlan& plan, int scan) {
  SparseReplay& one = replayed_sparse(scan, call);
  return time(kLaunchesOfCall, [&] { one.run(plan); });
}

double GroupStopwatch::of_call(std::size_t call, const ConvolutionPlan& plan) {
  ReplayedCall& one = replayed(0, call);
  const KernelMap* const map = calls_.front()[call].map.get();
  return time(kLaunchesOfCall, [&] { one.run(plan, map); });
}

}   // namespace pumice
