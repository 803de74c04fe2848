// Streams, events, graphs, libraries and launches of the fake driver.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "fake_driver/fake.hpp"
#include "support/device_emulator.hpp"

namespace pumice::fake {
namespace {

/// Never taken down, since streams are given back at the very end of a process too.
struct LiveStreams {
  std::mutex mutex;
  std::set<const Stream*> all;
};

LiveStreams& live_streams() {
  static auto* const streams = new LiveStreams;
  return *streams;
}

/// Ends the process where there is no such stream (any more): a real driver may crash then, or take
/// another stream for it.
Stream* stream_of(cuda::StreamHandle handle) {
  auto* const stream = reinterpret_cast<Stream*>(handle);
  const std::lock_guard lock(live_streams().mutex);
  if (!live_streams().all.contains(stream)) {
    std::fputs("fake driver: a call with a stream that was destroyed\n", stderr);
    std::abort();
  }
  return stream;
}

struct Event {
  std::chrono::steady_clock::time_point time;
};

Event* event_of(cuda::EventHandle handle) {
  return reinterpret_cast<Event*>(handle);
}
/// The handle of every library that NVRTC compiled.
void* of_nvrtc() {
  static char handle;
  return &handle;
}

/// By name where NVRTC compiled it, with its code where the fake compiler did.
struct Kernel {
  std::string name;
  Emulated emulated;

  std::size_t bytes() const {
    return emulated.thread != nullptr ? emulated.argument_bytes : argument_bytes(name);
  }
};

bool may_overlap(const cuda::LaunchConfig& config) {
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const cuda::LaunchAttribute& attribute = config.attributes[i];
    if (attribute.id == cuda::kProgrammaticStreamSerialization && attribute.value != 0) return true;
  }
  return false;
}

Kernel& kernel_of(cuda::KernelHandle handle) {
  return *reinterpret_cast<Kernel*>(handle);
}

/// Of this thread.
struct Recordings {
  std::vector<Graph*> open;
  int mode = 0;   // global, as threads begin
};

Recordings& recordings() {
  thread_local Recordings mine;
  return mine;
}

}   // namespace

bool is_unsafe() {
  const Recordings& mine = recordings();
  if (mine.open.empty() || mine.mode == cuda::kCaptureRelaxed) return false;
  for (Graph* graph : mine.open)
    graph->lost = true;
  return true;
}

bool is_capturing(cuda::StreamHandle stream) {
  return stream != nullptr && stream_of(stream)->capture != nullptr;
}

std::atomic<unsigned long> enqueued_so_far = 0;
std::atomic<unsigned long> waited_so_far = 0;
/// A letter for each of them, of this thread.
thread_local std::string launches;

void enqueue(cuda::StreamHandle stream, Work work, bool overlaps) {
  ++enqueued_so_far;
  launches.push_back('.');
  if (is_capturing(stream)) {
    Graph& graph = *stream_of(stream)->capture;
    graph.nodes.push_back({std::move(work), overlaps});
    graph.last = reinterpret_cast<cuda::GraphNodeHandle>(graph.id << 32 | graph.nodes.size());
  } else {
    work();
  }
}

/// As far apart as a device may: of two nodes the later one begins first, where it may, and the
/// earlier one runs where that waits. A grid is let in by one that has waited itself, so a device
/// has one grid that runs and at most one that waits. Every other launch of a graph pairs its nodes
/// from the second one on.
void launch_nodes(Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes;
  std::size_t at = 0;
  if (graph.launches++ % 2 == 1 && !nodes.empty()) nodes[at++].work();
  while (at < nodes.size()) {
    const Work& earlier = nodes[at].work;
    if (at + 1 < nodes.size() && nodes[at + 1].overlaps) {
      test::run_when_waited_for(earlier, nodes[at + 1].work);
      at += 2;
    } else {
      earlier();
      at += 1;
    }
  }
}

}   // namespace pumice::fake

// NOLINTBEGIN(readability-identifier-naming): the driver's own names
extern "C" {
using namespace pumice::fake;
using namespace pumice::cuda;

/// For tests: how many kernels, copies and fills streams were given.
unsigned long pumice_fake_driver_enqueued() {
  return enqueued_so_far;
}

/// How often the host waited for a stream.
unsigned long pumice_fake_driver_waited() {
  return waited_so_far;
}

/// For tests: of all that this thread enqueued since the last call, 'o' for a kernel that may begin
/// before what is before it has ended, '.' for all else.
const char* pumice_fake_driver_launches() {
  thread_local std::string said;
  said = std::exchange(launches, {});
  return said.c_str();
}

Result cuStreamCreate(StreamHandle* stream, unsigned) {
  auto* const made = new pumice::fake::Stream;
  const std::lock_guard lock(live_streams().mutex);
  live_streams().all.insert(made);
  *stream = reinterpret_cast<StreamHandle>(made);
  return kSuccess;
}
Result cuStreamDestroy_v2(StreamHandle stream) {
  auto* const gone = stream_of(stream);
  {
    const std::lock_guard lock(live_streams().mutex);
    live_streams().all.erase(gone);
  }
  delete gone;
  return kSuccess;
}
Result cuStreamSynchronize(StreamHandle stream) {
  ++waited_so_far;
  if (behaviour() == "fault") return 700;
  return pumice::fake::is_capturing(stream) ? 900 : kSuccess;
}
Result cuStreamWaitEvent(StreamHandle, EventHandle, unsigned) {
  return kSuccess;   // what was enqueued before has run
}
Result cuStreamIsCapturing(StreamHandle stream, int* state) {
  *state = pumice::fake::is_capturing(stream) ? 1 : kCaptureNone;
  return kSuccess;
}
Result cuStreamBeginCapture_v2(StreamHandle stream, int) {
  if (stream == nullptr) return kCaptureUnsupported;
  static std::atomic<std::uint64_t> next = 1;
  auto* const graph = new pumice::fake::Graph;
  graph->id = next++;
  stream_of(stream)->capture = graph;
  recordings().open.push_back(graph);
  return kSuccess;
}
Result cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  auto* const made = std::exchange(stream_of(stream)->capture, nullptr);
  std::erase(recordings().open, made);
  *graph = reinterpret_cast<GraphHandle>(made);
  if (made == nullptr) return 903;
  return made->lost ? 901 : kSuccess;
}
Result cuStreamGetCaptureInfo_v2(StreamHandle stream, int* state, std::uint64_t* id, GraphHandle*,
                                 const GraphNodeHandle**, std::size_t*) {
  const auto* const graph = stream == nullptr ? nullptr : stream_of(stream)->capture;
  *state = graph == nullptr ? kCaptureNone : 1;
  if (graph != nullptr) *id = graph->id;
  return kSuccess;
}
Result cuStreamGetCaptureInfo_v3(StreamHandle stream, int* state, std::uint64_t* id, GraphHandle*,
                                 const GraphNodeHandle** nodes, const void** edges,
                                 std::size_t* count) {
  const auto* const graph = stream == nullptr ? nullptr : stream_of(stream)->capture;
  *state = graph == nullptr ? kCaptureNone : 1;
  if (graph == nullptr) return kSuccess;
  *id = graph->id;
  if (nodes != nullptr) *nodes = &graph->last;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = graph->last == nullptr ? 0 : 1;
  return kSuccess;
}
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, recordings().mode);
  return kSuccess;
}
Result cuEventCreate(EventHandle* event, unsigned) {
  *event = reinterpret_cast<EventHandle>(new pumice::fake::Event);
  return kSuccess;
}
Result cuEventDestroy_v2(EventHandle event) {
  delete event_of(event);
  return kSuccess;
}
Result cuEventRecord(EventHandle event, StreamHandle) {
  event_of(event)->time = std::chrono::steady_clock::now();
  return kSuccess;
}
Result cuEventSynchronize(EventHandle) {
  return kSuccess;
}
Result cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(event_of(to)->time - event_of(from)->time).count();
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExecHandle* executable, GraphHandle graph,
                                   unsigned long long) {
  *executable = reinterpret_cast<GraphExecHandle>(
      new pumice::fake::Graph(*reinterpret_cast<pumice::fake::Graph*>(graph)));
  return kSuccess;
}
Result cuGraphGetNodes(GraphHandle graph, GraphNodeHandle*, std::size_t* count) {
  *count = reinterpret_cast<pumice::fake::Graph*>(graph)->nodes.size();
  return kSuccess;
}
Result cuGraphLaunch(GraphExecHandle executable, StreamHandle) {
  return guarded([&] { launch_nodes(*reinterpret_cast<pumice::fake::Graph*>(executable)); });
}
Result cuGraphExecDestroy(GraphExecHandle executable) {
  delete reinterpret_cast<pumice::fake::Graph*>(executable);
  return kSuccess;
}
Result cuGraphDestroy(GraphHandle graph) {
  delete reinterpret_cast<pumice::fake::Graph*>(graph);
  return kSuccess;
}

Result cuLibraryLoadData(LibraryHandle* library, const void* code, int*, void**, unsigned, int*,
                         void**, unsigned) {
  if (is_unsafe()) return kCaptureUnsupported;
  if (std::memcmp(code, "\177ELF", 4) != 0) return kInvalidImage;
  return guarded([&] {
    void* const emulated = load_emulated(code);
    *library = reinterpret_cast<LibraryHandle>(emulated == nullptr ? of_nvrtc() : emulated);
  });
}
Result cuLibraryUnload(LibraryHandle) {
  return kSuccess;
}
Result cuLibraryGetKernel(KernelHandle* kernel, LibraryHandle library, const char* name) {
  auto found = std::make_unique<pumice::fake::Kernel>();
  found->name = name;
  if (library != of_nvrtc()) found->emulated = find_emulated(library, name);
  if (found->bytes() == 0) return kNotFound;
  static auto& kept = *new std::vector<std::unique_ptr<pumice::fake::Kernel>>;
  const std::lock_guard lock(state().mutex);
  kept.push_back(std::move(found));
  *kernel = reinterpret_cast<KernelHandle>(kept.back().get());
  return kSuccess;
}
Result cuKernelGetFunction(FunctionHandle* function, KernelHandle kernel) {
  if (is_unsafe()) return kCaptureUnsupported;
  *function = reinterpret_cast<FunctionHandle>(kernel);
  return kSuccess;
}
Result cuKernelGetAttribute(int* value, int attribute, KernelHandle, DeviceId) {
  switch (attribute) {
    case kMostThreads: *value = 1024; break;
    case kMostDynamicSharedBytes: *value = 48 << 10; break;
    default: *value = 0;
  }
  return kSuccess;
}
Result cuKernelSetAttribute(int attribute, int value, KernelHandle, DeviceId) {
  const bool fits = attribute == kMostDynamicSharedBytes && value <= kMostSharedBytes;
  return fits ? kSuccess : kInvalidValue;
}
Result cuKernelGetParamInfo(KernelHandle kernel, std::size_t index, std::size_t* offset,
                            std::size_t* size) {
  if (!has_context()) return 201;
  if (index != 0) return kInvalidValue;
  *offset = 0;
  *size = kernel_of(kernel).bytes();
  return kSuccess;
}
Result cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle function, void** arguments,
                        void**) {
  if (!has_context()) return 201;
  const auto& kernel = kernel_of(reinterpret_cast<KernelHandle>(function));
  return guarded([&] {
    const bool emulated = kernel.emulated.thread != nullptr;
    enqueue(config->stream,
            emulated ? emulated_work(kernel.name, kernel.emulated, arguments[0], *config)
                     : work_of(kernel.name, arguments[0], *config),
            emulated && may_overlap(*config));
    if (may_overlap(*config)) launches.back() = 'o';
  });
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle, int threads,
                                                   std::size_t) {
  *blocks = 2048 / threads;
  return kSuccess;
}

// The rest of the list stands in driver.cpp.
#define PUMICE_CHECK(name, parameters) Result name parameters;
PUMICE_CUDA_DRIVER_FUNCTIONS(PUMICE_CHECK)
PUMICE_CUDA_DRIVER_EXTRAS(PUMICE_CHECK)
#undef PUMICE_CHECK
}
// NOLINTEND(readability-identifier-naming)
