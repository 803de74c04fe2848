// The scheduler of emulated threads. A thread that waits hands over to the next one that can run;
// when nobody can, the owner finds out whether the block is done or stuck.
#include "support/device_emulator.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/random.hpp>

#include "support/fiber.hpp"

namespace pumice::test {
namespace {

using emulator::Where;
constexpr int kMostThreads = 1024;
constexpr int kMostSharedBytes = 48 << 10;   // that a kernel may declare

std::string at(const Where& where) {
  const std::string file = where.file_name();
  const auto slash = file.rfind('/');
  return (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" +
         std::to_string(where.line());
}

/// The threads [0, size) in the order in which they are to run.
template <class Number> std::vector<Number> arrange(Number size, RunOrder order, Random& random) {
  std::vector<Number> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), Number{0});
  if (order == RunOrder::descending) std::reverse(numbers.begin(), numbers.end());
  if (order == RunOrder::shuffled) {
    for (std::size_t i = numbers.size(); i > 1; --i) {
      std::swap(
          numbers[i - 1],
          numbers[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }
  return numbers;
}

struct Freer {
  void operator()(void* memory) const { std::free(memory); }
};

struct SharedVariable {
  const void* site;
  std::size_t bytes;
  std::unique_ptr<void, Freer> memory;
};

struct Warp {
  std::uint64_t words[2][kWarpThreads];   // by parity of `collectives`: lanes may still be reading
  int arrived = 0;
  std::uint32_t arrived_lanes = 0;
  int collectives = 0;
  const char* collective = "";
  Where where;
};

/// A launch that has begun before the one before it.
struct Overlap {
  const std::function<void()>& previous;
  bool has_run = false;

  void run_previous() {
    has_run = true;
    previous();
  }
};
/// Of the next emulation of this thread; null: none.
thread_local Overlap* next_overlap = nullptr;

class Emulator {
 public:
  Emulator() : fibers_(this, &Emulator::body, &Emulator::idle) {}

  void run(const EmulatedShape& shape, const std::function<void()>& thread,
           const EmulatorOptions& options);

  int thread() const { return fibers_.current(); }
  int block() const { return block_; }
  int block_y() const { return block_y_; }
  const EmulatedShape& shape() const { return shape_; }
  void block_sync(const Where& where);
  const std::uint64_t* exchange(std::uint64_t word, const char* collective, const Where& where);
  void* shared(const void* site, std::size_t bytes, std::size_t alignment);
  void pause(const char* why);
  void wait_for_previous();
  void made_progress() { fruitless_pauses_ = 0; }

 private:
  static void body(void* self, int number);
  static void idle(void* self, int number);
  void run_block();
  void run_previous();
  void hand_over();
  void make_ready(int first, int count);
  /// Leaves the block with what `failure_` says. The caller's frame is never unwound, so it must
  /// hold nothing.
  [[noreturn]] void give_up();
  std::string describe_deadlock() const;
  void spoil_shared();

  FiberGroup fibers_;
  EmulatedShape shape_;
  EmulatorOptions options_;
  Random random_{1};
  const std::function<void()>* thread_ = nullptr;
  int block_ = 0;
  int block_y_ = 0;

  std::vector<int> ready_;   // threads from next_ on can run
  std::size_t next_ = 0;
  std::int64_t fruitless_pauses_ = 0;   // in a row, of all threads
  Overlap* overlap_ = nullptr;
  std::vector<int> waiting_;   // for the launch before
  std::vector<bool> waited_;   // or found that it had run
  std::vector<bool> finished_;
  int finished_count_ = 0;
  std::vector<bool> at_barrier_;
  int at_barrier_count_ = 0;
  Where barrier_;
  std::vector<Warp> warps_;
  std::vector<SharedVariable> shared_;
  std::string failure_;
};

thread_local Emulator* running = nullptr;

Emulator& emulator_here() {
  if (running == nullptr) throw std::runtime_error("device code called outside `emulate`");
  return *running;
}

void Emulator::run(const EmulatedShape& shape, const std::function<void()>& thread,
                   const EmulatorOptions& options) {
  if (shape.threads <= 0 || shape.threads > kMostThreads || shape.threads % kWarpThreads != 0) {
    throw std::runtime_error("a block of " + std::to_string(shape.threads) +
                             " threads: give a multiple of 32 up to 1024");
  }
  shape_ = shape;
  options_ = options;
  random_ = Random(options.seed);
  thread_ = &thread;
  overlap_ = std::exchange(next_overlap, nullptr);
  fibers_.reserve(shape.threads);
  shared_.clear();
  if (shape.shared_bytes > 0) {
    shared(this, static_cast<std::size_t>(shape.shared_bytes), 1024);   // of the launch: our site
  }
  const auto order = arrange(shape.blocks * shape.blocks_y, options.blocks, random_);
  for (const std::int64_t number : order) {
    block_ = static_cast<int>(number % shape.blocks);
    block_y_ = static_cast<int>(number / shape.blocks);
    run_block();
  }
}

void Emulator::run_block() {
  const auto threads = static_cast<std::size_t>(shape_.threads);
  spoil_shared();
  finished_.assign(threads, false);
  waited_.assign(threads, false);
  waiting_.clear();
  at_barrier_.assign(threads, false);
  finished_count_ = at_barrier_count_ = 0;
  warps_.assign(threads / kWarpThreads, Warp{});
  ready_.clear();
  next_ = 0;
  fruitless_pauses_ = 0;
  make_ready(0, shape_.threads);
  hand_over();
  if (failure_.empty() && !waiting_.empty()) {
    run_previous();
    hand_over();
  }
  std::string failure = std::move(failure_);
  failure_.clear();
  if (failure.empty() && finished_count_ < shape_.threads) failure = describe_deadlock();
  if (failure.empty()) return;
  fibers_.restart();
  throw std::runtime_error("block " + std::to_string(block_) + ": " + failure);
}

void Emulator::run_previous() {
  try {
    overlap_->run_previous();
  } catch (...) {
    fibers_.restart();
    throw;
  }
  ready_ = std::move(waiting_);   // others arrive at a collective that these are missing from
  waiting_.clear();
  next_ = 0;
  made_progress();
}

void Emulator::wait_for_previous() {
  if (overlap_ == nullptr) return;
  waited_[static_cast<std::size_t>(thread())] = true;
  if (overlap_->has_run) return;
  waiting_.push_back(thread());
  hand_over();
}

void Emulator::body(void* self, int) {
  (*static_cast<Emulator*>(self)->thread_)();
}

void Emulator::idle(void* self, int number) {
  auto& emulator = *static_cast<Emulator*>(self);
  if (emulator.overlap_ != nullptr && !emulator.waited_[static_cast<std::size_t>(number)]) {
    emulator.failure_ =
        "thread " + std::to_string(number) + " has returned and never waited for the launch before";
    emulator.give_up();
  }
  emulator.finished_[static_cast<std::size_t>(number)] = true;
  ++emulator.finished_count_;
  emulator.made_progress();
  emulator.hand_over();
}

/// To the next thread that can run, or to the owner when there is none.
void Emulator::hand_over() {
  fibers_.switch_to(next_ < ready_.size() ? ready_[next_++] : FiberGroup::kOwner);
}

void Emulator::make_ready(int first, int count) {
  if (next_ == ready_.size()) {
    ready_.clear();
    next_ = 0;
  }
  if (options_.threads == RunOrder::shuffled) {
    for (const int number : arrange(count, options_.threads, random_))
      ready_.push_back(first + number);
    return;
  }
  const bool ascending = options_.threads == RunOrder::ascending;
  for (int i = 0; i < count; ++i)
    ready_.push_back(first + (ascending ? i : count - 1 - i));
}

/// Lets everybody else run before the caller looks again at what it waits for.
void Emulator::pause(const char* why) {
  constexpr std::int64_t kPatience = 1000;   // rounds in which nobody gets anywhere
  if (++fruitless_pauses_ > kPatience * shape_.threads) {
    failure_ = "thread " + std::to_string(thread()) + " waits for ever: " + why;
    give_up();
  }
  if (next_ > 1 << 16) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }
  make_ready(thread(), 1);
  hand_over();
}

void Emulator::give_up() {
  fibers_.switch_to(FiberGroup::kOwner);
  std::abort();   // nobody comes back to a failed block
}

void Emulator::block_sync(const Where& where) {
  if (at_barrier_count_ == 0) barrier_ = where;
  if (at_barrier_count_ > 0 &&
      (barrier_.line() != where.line() || barrier_.file_name() != where.file_name())) {
    failure_ = "thread " + std::to_string(thread()) + " waits at block_sync (" + at(where) +
               ") while others wait at another (" + at(barrier_) + ")";
    give_up();
  }
  made_progress();
  at_barrier_[static_cast<std::size_t>(thread())] = true;
  if (++at_barrier_count_ == shape_.threads) {
    at_barrier_count_ = 0;
    at_barrier_.assign(at_barrier_.size(), false);
    make_ready(0, shape_.threads);
  }
  hand_over();
}

const std::uint64_t* Emulator::exchange(std::uint64_t word, const char* collective,
                                        const Where& where) {
  Warp& warp = warps_[static_cast<std::size_t>(thread() / kWarpThreads)];
  const int lane = thread() % kWarpThreads;
  if (warp.arrived == 0) {
    warp.where = where;
    warp.collective = collective;
  } else if (warp.where.line() != where.line() || warp.where.file_name() != where.file_name()) {
    failure_ = "lane " + std::to_string(lane) + " of warp " +
               std::to_string(thread() / kWarpThreads) + " calls " + collective + " (" + at(where) +
               ") while others wait in " + warp.collective + " (" + at(warp.where) + ")";
    give_up();
  }
  std::uint64_t* const words = warp.words[warp.collectives % 2];
  words[lane] = word;
  warp.arrived_lanes |= std::uint32_t{1} << lane;
  made_progress();
  if (++warp.arrived == kWarpThreads) {
    warp.arrived = 0;
    warp.arrived_lanes = 0;
    ++warp.collectives;
    make_ready(thread() / kWarpThreads * kWarpThreads, kWarpThreads);
  }
  hand_over();
  return words;
}

std::string Emulator::describe_deadlock() const {
  std::ostringstream text;
  text << "stuck: " << finished_count_ << " of " << shape_.threads << " threads have returned";
  if (at_barrier_count_ > 0) {
    text << ", " << at_barrier_count_ << " wait at block_sync (" << at(barrier_) << ')';
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    if (warps_[w].arrived == 0) continue;
    const int missing = std::countr_one(warps_[w].arrived_lanes);
    text << ", " << warps_[w].arrived << " lanes of warp " << w << " wait in "
         << warps_[w].collective << " (" << at(warps_[w].where) << ") for lane " << missing
         << ", which "
         << (finished_[w * kWarpThreads + static_cast<std::size_t>(missing)] ? "has returned"
                                                                             : "is elsewhere");
  }
  return text.str();
}

void* Emulator::shared(const void* site, std::size_t bytes, std::size_t alignment) {
  std::size_t total = 0;
  for (const SharedVariable& variable : shared_) {
    if (variable.site == site) return variable.memory.get();
    if (variable.site != this) total += variable.bytes;
  }
  if (site != this && total + bytes > kMostSharedBytes) {
    failure_ = "shared variables of " + std::to_string(total + bytes) + " bytes; the most is 49152";
    give_up();
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0)
    throw std::bad_alloc();
  shared_.push_back({site, bytes, std::unique_ptr<void, Freer>(memory)});
  std::memset(memory, 0xa5, bytes);
  return memory;
}

void Emulator::spoil_shared() {
  for (const SharedVariable& variable : shared_)
    // Every other time NaN in all types, which no sum survives.
    std::memset(variable.memory.get(), block_ % 2 == 0 ? 0xff : 0xa5 + block_ % 64, variable.bytes);
}

}   // namespace

namespace {
ReadListener read_listener = nullptr;
}   // namespace

void listen_to_reads(ReadListener listener) {
  read_listener = listener;
}

void note_read(const void* from, std::size_t bytes) {
  if (read_listener != nullptr) read_listener(from, bytes);
}

void run_when_waited_for(const std::function<void()>& previous, const std::function<void()>& work) {
  Overlap overlap{previous};
  next_overlap = &overlap;
  struct Scope {
    ~Scope() { next_overlap = nullptr; }
  } const scope;
  work();
  if (!overlap.has_run) overlap.run_previous();
}

void emulate_threads(const EmulatedShape& shape, const std::function<void()>& thread,
                     const EmulatorOptions& options) {
  // One for each launch that has begun.
  thread_local std::vector<std::unique_ptr<Emulator>> emulators;
  thread_local std::size_t begun = 0;
  if (begun == emulators.size()) emulators.push_back(std::make_unique<Emulator>());
  struct Scope {
    explicit Scope(Emulator& emulator) : before(std::exchange(running, &emulator)) { ++begun; }
    ~Scope() {
      running = before;
      --begun;
    }
    Emulator* before;
  } const scope(*emulators[begun]);
  running->run(shape, thread, options);
}

}   // namespace pumice::test

namespace pumice::emulator {
using test::emulator_here;

int thread_index() {
  return emulator_here().thread();
}
int block_index() {
  return emulator_here().block();
}
int block_index_y() {
  return emulator_here().block_y();
}
int block_size() {
  return emulator_here().shape().threads;
}
int grid_size() {
  return static_cast<int>(emulator_here().shape().blocks);
}
void block_sync(const Where& where) {
  emulator_here().block_sync(where);
}
const std::uint64_t* exchange_in_warp(std::uint64_t word, const char* collective,
                                      const Where& where) {
  return emulator_here().exchange(word, collective, where);
}
void* block_shared(const void* site, std::size_t bytes, std::size_t alignment) {
  return emulator_here().shared(site, bytes, alignment);
}
void wait_for_previous() {
  emulator_here().wait_for_previous();
}
void pause(const char* why) {
  emulator_here().pause(why);
}
void made_progress() {
  emulator_here().made_progress();
}
void* launch_shared() {
  auto& emulator = emulator_here();
  return emulator.shared(&emulator, static_cast<std::size_t>(emulator.shape().shared_bytes), 1024);
}

}   // namespace pumice::emulator
