// One pass a scan, with the recorder on.
#include "ops/tune/recorded_passes.hpp"

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

namespace pumice {
namespace {

void check_alike(const std::vector<OperatorCall>& first, const std::vector<OperatorCall>& other,
                 int scan) {
  const bool as_many = first.size() == other.size();
  std::size_t at = 0;
  while (as_many && at < first.size() && to_text(first[at].problem) == to_text(other[at].problem))
    ++at;
  PUMICE_EXPECTS(
      as_many && at == first.size(), "scan ", scan + 1, " runs other layers than the first one (",
      as_many ? to_text(other[at].problem) + " in place of " + to_text(first[at].problem)
              : std::to_string(other.size()) + " calls instead of " + std::to_string(first.size()),
      "); tune them one by one");
}

}   // namespace

std::vector<std::vector<OperatorCall>> recorded_passes(const NetworkPasses& passes) {
  PUMICE_EXPECTS(passes.run != nullptr, "passes.run is empty; give the network's pass");
  PUMICE_EXPECTS(passes.scans >= 1, "scans = ", passes.scans, ": give at least one");
  std::vector<std::vector<OperatorCall>> calls;
  CallRecorder recorder;
  for (int scan = 0; scan < passes.scans; ++scan) {
    passes.run(scan);
    wait(passes.stream);
    calls.push_back(recorder.take());
    check_alike(calls.front(), calls.back(), scan);
  }
  PUMICE_EXPECTS(!calls.front().empty(),
                 "the network runs no layer whose plan is chosen: there is nothing to tune");
  return calls;
}

}   // namespace pumice
