// How long the calls of a group take with some plans.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ops/tune/network_groups.hpp"
#include "ops/tune/recorded_passes.hpp"
#include "ops/tune/replay.hpp"
#include "ops/tune/sparse_replay.hpp"

namespace pumice {

/// On a device a sample is the time between two events, behind work that the device is busy with
/// while the host enqueues, so that it is the device's alone; caches are as after other work.
class GroupStopwatch {
 public:
  /// `cuts_too`: the time of a group has that of cutting its maps.
  GroupStopwatch(const RecordedPasses& recorded, const NetworkGroups& network, StreamView stream,
                 bool cuts_too = true);

  /// Seconds for the calls of a group.
  double of_group(std::size_t group, const tune::Choice& choice, int scan);
  /// Seconds for one call on a map that is cut.
  double of_call(std::size_t call, const ConvolutionPlan& plan);
  /// Seconds for one sparse product on a pattern that is cut.
  double of_sparse_call(std::size_t call, const SparsePlan& plan, int scan = 0);

 private:
  double of_decisions(const NetworkGroup& group, const tune::Choice& choice, int scan);
  template <class Work> double time(std::size_t launches, Work&& work);
  ReplayedCall& replayed(int scan, std::size_t call);
  SparseReplay& replayed_sparse(int scan, std::size_t call);
  void keep_busy(std::size_t launches);

  const std::vector<std::vector<OperatorCall>>& calls_;
  const std::vector<std::vector<SparseCall>>& sparse_calls_;
  const NetworkGroups& network_;
  StreamView stream_;
  bool cuts_too_;
  bool keeps_weights_;
  ReplayTensors tensors_;
  std::vector<std::vector<std::unique_ptr<ReplayedCall>>> replayed_;   // made when first needed
  std::vector<std::vector<std::unique_ptr<SparseReplay>>> replayed_sparse_;
  Buffer<std::byte> filler_;   // larger than the caches; empty on the CPU
};

}   // namespace pumice
