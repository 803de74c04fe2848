// How long the calls of a group take with some plans.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ops/tune/network_groups.hpp"
#include "ops/tune/replay.hpp"

namespace pumice {

/// On a device a sample is the time between two events, behind work that the device is busy with
/// while the host enqueues, so that it is the device's alone; caches are as after other work.
class GroupStopwatch {
 public:
  /// `calls`: of each scan, in the order in which the pass made them. `cuts_too`: the time of a
  /// group has that of cutting its maps.
  GroupStopwatch(const std::vector<std::vector<OperatorCall>>& calls, const NetworkGroups& network,
                 StreamView stream, bool cuts_too = true);

  /// Seconds for the calls of a group.
  double of_group(std::size_t group, const tune::Choice& choice, int scan);
  /// Seconds for one call on a map that is cut.
  double of_call(std::size_t call, const ConvolutionPlan& plan);

 private:
  double of_decisions(const NetworkGroup& group, const tune::Choice& choice, int scan);
  template <class Work> double time(std::size_t launches, Work&& work);
  ReplayedCall& replayed(int scan, std::size_t call);
  void keep_busy(std::size_t launches);

  const std::vector<std::vector<OperatorCall>>& calls_;
  const NetworkGroups& network_;
  StreamView stream_;
  bool cuts_too_;
  bool keeps_weights_;
  ReplayTensors tensors_;
  std::vector<std::vector<std::unique_ptr<ReplayedCall>>> replayed_;   // made when first needed
  Buffer<std::byte> filler_;   // larger than the caches; empty on the CPU
};

}   // namespace pumice
