// The parts of the fake driver. Streams run what they are given at once; a capture keeps it
// instead, and a graph runs it at each launch. Device memory is host memory, filled with 0xa5 when
// taken. Kernels of the fake compiler run in the emulator of device code; of NVRTC's it knows a few
// by name.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/cuda/driver_api.hpp"

namespace pumice::fake {

using cuda::Result;
using Work = std::function<void()>;

struct Node {
  Work work;
  bool overlaps = false;   // begins before the node before it, and waits for it by itself
};

struct Graph {
  std::uint64_t id = 0;
  bool lost = false;   // by a call that is refused meanwhile
  std::vector<Node> nodes;
  std::size_t launches = 0;
  cuda::GraphNodeHandle last = nullptr;   // stands for the last of them
};

struct Stream {
  Graph* capture = nullptr;
};

struct Block {
  std::size_t bytes = 0;
  bool of_graph = false;   // taken during a capture
};

inline constexpr std::size_t kMemoryBytes = std::size_t{1} << 30;
inline constexpr int kMostSharedBytes = 232448;

struct State {
  std::mutex mutex;
  std::map<cuda::DeviceAddress, Block> blocks;
  std::size_t used_bytes = 0;
  std::size_t reserved_bytes = 0;   // freed, but kept by the pool
};
State& state();

/// What PUMICE_FAKE_DRIVER holds: "old", "no device", "broken", "fault", "initcheck", or nothing.
std::string behaviour();

/// With "initcheck", which bytes of its memory somebody wrote is known, and a kernel of the fake
/// compiler that reads others fails. The compiler has to be told by the same variable.
bool tracks_memory();
void track_block(const void* data, std::size_t bytes);
void drop_block(const void* data);
void mark_written(const void* data, std::size_t bytes);
void mark_copied(const void* to, const void* from, std::size_t bytes);
/// What was read since the last call though nobody wrote it, in words; empty: nothing.
std::string take_bad_reads();

/// 90, or what PUMICE_FAKE_COMPUTE holds.
int compute_capability();

/// Whether this thread has a current context, as kernels that are loaded when first used need.
bool has_context();

/// Runs `work`, or keeps it for the graph that `stream` is captured into. Recorded work that
/// `overlaps` is of an emulated kernel, and asks for what is before it when it waits.
void enqueue(cuda::StreamHandle stream, Work work, bool overlaps = false);
bool is_capturing(cuda::StreamHandle stream);
/// Whether this thread may not take memory from the system, since it records a graph and has not
/// asked for more with cuThreadExchangeStreamCaptureMode. As a real driver's, the recording is
/// lost.
bool is_unsafe();

/// A kernel of the tests, done on the host: `arguments` is the struct, `name` its name.
Work work_of(const std::string& name, const void* arguments, const cuda::LaunchConfig& config);
/// The size of that struct; 0 for a name that is none.
std::size_t argument_bytes(const std::string& name);

/// A kernel of the fake compiler.
struct Emulated {
  void (*thread)(const void* arguments) = nullptr;   // null where there is none of a name
  std::size_t argument_bytes = 0;
};
/// The library that the fake compiler made, opened; null for code that it did not make.
void* load_emulated(const void* code);
Emulated find_emulated(void* library, const std::string& name);
Work emulated_work(const std::string& name, const Emulated& kernel, const void* arguments,
                   const cuda::LaunchConfig& config);

/// What the emulator said of the last launch of this thread that failed.
std::string& last_failure();
inline constexpr cuda::Result kLaunchFailed = 719;
/// Runs `call`; kLaunchFailed and a last failure where it throws.
template <class Call> Result guarded(Call&& call) {
  try {
    call();
    return cuda::kSuccess;
  } catch (const std::exception& error) {
    last_failure() = error.what();
    return kLaunchFailed;
  }
}

}   // namespace pumice::fake
