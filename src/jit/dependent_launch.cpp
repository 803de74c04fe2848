// Which kernels wait, and which launches may be early.
#include "jit/dependent_launch.hpp"

#include <charconv>
#include <cstdint>

#include <pumice/core/error.hpp>

#include "core/cuda/context.hpp"
#include "core/environment.hpp"

namespace pumice::jit {
namespace {

constexpr int kOldestArchitecture = 90;
/// Graphs keep the kind of a dependency since CUDA 12.3.
constexpr int kOldestDriver = 12030;

int number_of(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (architecture.starts_with(kPrefix)) {
    std::from_chars(architecture.data() + kPrefix.size(), architecture.data() + architecture.size(),
                    number);
  }
  return number;
}

/// The node that all work enqueued next depends on, alone; null where nothing is recorded, or it
/// depends on none or on several.
struct Frontier {
  std::uint64_t recording = 0;
  cuda::GraphNodeHandle node = nullptr;
  bool writes_only_features = false;
};

Frontier frontier_of(StreamView stream) {
  const cuda::Driver& driver = cuda::driver();
  if (stream.native == nullptr || driver.cuStreamGetCaptureInfo_v3 == nullptr) return {};
  int state = cuda::kCaptureNone;
  Frontier frontier;
  const cuda::GraphNodeHandle* nodes = nullptr;
  const void* edges = nullptr;   // asked for, or the driver refuses where one is not a plain one
  std::size_t count = 0;
  PUMICE_CUDA(cuStreamGetCaptureInfo_v3(cuda::handle_of(stream), &state, &frontier.recording,
                                        nullptr, &nodes, &edges, &count));
  if (state == cuda::kCaptureNone || count != 1) return {};
  frontier.node = nodes[0];
  return frontier;
}

/// The last kernel of ours that this thread recorded. Where a thread records into two streams by
/// turns, kernels are launched as always.
Frontier& last_recorded() {
  thread_local Frontier last;
  return last;
}

}   // namespace

bool parse_dependent_launches(std::string_view text) {
  PUMICE_EXPECTS(text.empty() || text == "off" || text == "on", "PUMICE_DEPENDENT_LAUNCH = \"",
                 text, "\": it is on or off");
  return text != "off";
}

bool dependent_launches() {
  static const bool value = parse_dependent_launches(environment::dependent_launch());
  return value;
}

bool waits_by_itself(const Source& source, std::string_view architecture) {
  return source.waits && number_of(architecture) >= kOldestArchitecture;
}

bool may_read_ahead(StreamView stream) {
  return dependent_launches() && last_recorded().writes_only_features &&
         detail::follows_recorded(stream);
}

namespace detail {

bool follows_recorded(StreamView stream) {
  const Frontier& last = last_recorded();
  if (last.node == nullptr) return false;   // nothing of ours: the driver need not be asked
  if (cuda::driver_state().version < kOldestDriver) return false;
  const Frontier now = frontier_of(stream);
  return now.node != nullptr && now.node == last.node && now.recording == last.recording;
}

void note_recorded(StreamView stream, bool writes_only_features) {
  Frontier& last = last_recorded();
  last = frontier_of(stream);
  last.writes_only_features = writes_only_features;
}

}   // namespace detail

}   // namespace pumice::jit
