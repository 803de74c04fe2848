// One pass a scan, with the recorder on.
#include "ops/tune/recorded_passes.hpp"

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

namespace pumice {
namespace {

template <class Call>
void check_alike(const std::vector<Call>& first, const std::vector<Call>& other, int scan) {
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

RecordedPasses recorded_passes(const NetworkPasses& passes) {
  PUMICE_EXPECTS(passes.run != nullptr, "passes.run is empty; give the network's pass");
  PUMICE_EXPECTS(passes.scans >= 1, "scans = ", passes.scans, ": give at least one");
  RecordedPasses recorded;
  CallRecorder recorder;
  for (int scan = 0; scan < passes.scans; ++scan) {
    passes.run(scan);
    wait(passes.stream);
    recorded.calls.push_back(recorder.take());
    recorded.sparse.push_back(recorder.take_sparse());
    check_alike(recorded.calls.front(), recorded.calls.back(), scan);
    check_alike(recorded.sparse.front(), recorded.sparse.back(), scan);
  }
  PUMICE_EXPECTS(
      !recorded.calls.front().empty() || !recorded.sparse.front().empty(),
      "the network runs no layer whose plan is chosen: there is nothing to tune; a layer "
      "that was given a plan runs just that, so take it away (layer.plan = None)");
  return recorded;
}

}   // namespace pumice
