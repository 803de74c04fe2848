// One list behind a lock for all threads, since a backward pass may run in another one than its
// forward pass; and a list of a thread's own where it asks for one.
#include "ops/tune/call_recorder.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <pumice/core/allocator.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/plan/plan_book.hpp>

namespace pumice {
namespace {

struct Record {
  std::atomic<bool> is_on{false};
  std::atomic<bool> has_sparse{false};   // and sparse products are recorded too
  std::mutex mutex;
  std::vector<OperatorCall> calls;
  std::vector<SparseCall> sparse;
};

Record& record() {
  static auto& one = *new Record;
  return one;
}

ThreadCalls*& calls_of_thread() {
  thread_local ThreadCalls* innermost = nullptr;
  return innermost;
}

Csr copied(const CsrView& pattern, StreamView stream) {
  if (pattern.device.kind == DeviceKind::cpu) return copy_to(StreamView(), pattern);
  const Csr here = copy_to_host(pattern, stream);
  return copy_to(stream, here.view());
}

}   // namespace

bool records_calls(Device device) {
  const bool is_on = record().is_on.load(std::memory_order_acquire) || calls_of_thread() != nullptr;
  return is_on && !allocates_for_one_pass(device);
}

bool records_sparse_calls(Device device) {
  return record().has_sparse.load(std::memory_order_acquire) && !allocates_for_one_pass(device);
}

void note_call(OperatorCall call) {
  if (ThreadCalls* mine = calls_of_thread()) mine->calls_.push_back(call);
  const std::scoped_lock lock(record().mutex);
  if (record().is_on) record().calls.push_back(std::move(call));
}

void note_sparse_call(SparseProblem problem, SparsePlanPtr plan, const CsrView& pattern,
                      StreamView stream) {
  if (is_capturing(stream)) return;   // it could not be waited for
  const Target& target = target_of(pattern.device);
  const tune::PlanKey key = key_of(problem, target);
  const auto is_known = [&] {
    const auto& known = record().sparse;
    return std::any_of(known.begin(), known.end(),
                       [&](const SparseCall& call) { return key_of(call.problem, target) == key; });
  };
  std::unique_lock lock(record().mutex);
  std::shared_ptr<const Csr> copy;
  if (record().has_sparse && !is_known()) {
    // Copying waits: for a device, and where its memory is a framework's for a lock that another
    // thread may have while it waits for ours.
    lock.unlock();
    copy = std::make_shared<const Csr>(copied(pattern, stream));
    lock.lock();
    if (is_known()) copy = nullptr;   // meanwhile
  }
  if (!record().has_sparse) return;
  record().sparse.push_back({std::move(problem), std::move(plan), std::move(copy)});
}

CallRecorder::CallRecorder() {
  PUMICE_EXPECTS(!record().is_on.exchange(true),
                 "calls of operators are recorded already: one tuning at a time in a process");
  record().has_sparse = true;
}

CallRecorder::~CallRecorder() {
  const std::scoped_lock lock(record().mutex);
  record().is_on = record().has_sparse = false;
  record().calls.clear();
  record().sparse.clear();
}

std::vector<SparseCall> CallRecorder::take_sparse() {
  const std::scoped_lock lock(record().mutex);
  return std::exchange(record().sparse, {});
}

std::vector<OperatorCall> CallRecorder::take() {
  const std::scoped_lock lock(record().mutex);
  return std::exchange(record().calls, {});
}

ThreadCalls::ThreadCalls() : outer_(std::exchange(calls_of_thread(), this)) {}

ThreadCalls::~ThreadCalls() {
  calls_of_thread() = outer_;
}

}   // namespace pumice
