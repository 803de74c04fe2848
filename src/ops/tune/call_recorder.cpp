// One list behind a lock: a backward pass may run in another thread than its forward pass.
#include "ops/tune/call_recorder.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

struct Record {
  std::atomic<bool> is_on{false};
  std::mutex mutex;
  std::vector<OperatorCall> calls;
};

Record& record() {
  static auto& one = *new Record;
  return one;
}

}   // namespace

bool records_calls() {
  return record().is_on.load(std::memory_order_acquire);
}

void note_call(OperatorCall call) {
  const std::scoped_lock lock(record().mutex);
  if (record().is_on) record().calls.push_back(std::move(call));
}

CallRecorder::CallRecorder() {
  PUMICE_EXPECTS(!record().is_on.exchange(true),
                 "calls of operators are recorded already: one tuning at a time in a process");
}

std::unique_ptr<CallRecorder> CallRecorder::if_none() {
  if (record().is_on.exchange(true)) return nullptr;
  return std::unique_ptr<CallRecorder>(new CallRecorder(IsOn{}));
}

CallRecorder::~CallRecorder() {
  const std::scoped_lock lock(record().mutex);
  record().is_on = false;
  record().calls.clear();
}

std::vector<OperatorCall> CallRecorder::take() {
  const std::scoped_lock lock(record().mutex);
  return std::exchange(record().calls, {});
}

}   // namespace pumice
