// Records in mapped host memory, handed out by stream.
#include "core/cuda/status.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cuda/context.hpp"

namespace pumice::cuda {
namespace {

/// One cache line each, so that two streams in trouble do not write the same one.
struct alignas(64) PaddedRecord {
  StatusRecord record;
};

struct Slot {
  StatusRecord* host = nullptr;
  StatusRecord* device = nullptr;
};

class Records {
 public:
  Slot of(StreamView stream) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[{stream.device.index, stream.native}];
    if (slot.host == nullptr) slot = take(stream.device);
    return slot;
  }
  Slot remove(StreamView stream) {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.find({stream.device.index, stream.native});
    if (found == slots_.end()) return {};
    const Slot slot = found->second;
    slots_.erase(found);
    return slot;
  }
  void give_back(Device device, Slot slot) {
    const std::lock_guard lock(mutex_);
    free_[device.index].push_back(slot);
  }

 private:
  Slot take(Device device) {
    std::vector<Slot>& free = free_[device.index];
    if (free.empty()) {
      const ContextGuard guard(device);
      const RelaxedCapture relaxed;
      void* memory = nullptr;
      PUMICE_CUDA(
          cuMemHostAlloc(&memory, kSlab * sizeof(PaddedRecord), kHostPortable | kHostDeviceMap));
      DeviceAddress mapped = 0;
      PUMICE_CUDA(cuMemHostGetDevicePointer_v2(&mapped, memory, 0));
      for (std::size_t i = 0; i < kSlab; ++i) {
        auto* host = new (static_cast<PaddedRecord*>(memory) + i) PaddedRecord;
        auto* there = reinterpret_cast<PaddedRecord*>(mapped) + i;
        free.push_back({&host->record, &there->record});
      }
    }
    const Slot slot = free.back();
    free.pop_back();
    return slot;
  }

  static constexpr std::size_t kSlab = 64;   // a page of host memory
  std::mutex mutex_;
  std::map<std::pair<int, void*>, Slot> slots_;
  std::map<int, std::vector<Slot>> free_;
};

Records& records() {
  static auto& all = *new Records;   // never destroyed: streams of static storage may go later
  return all;
}

struct Sites {
  std::mutex mutex;
  std::vector<std::string> names;
};
Sites& sites() {
  static auto& all = *new Sites;
  return all;
}

std::string site_name(int site) {
  const std::lock_guard lock(sites().mutex);
  const auto& names = sites().names;
  if (site < 0 || static_cast<std::size_t>(site) >= names.size())
    return "site " + std::to_string(site);
  return names[static_cast<std::size_t>(site)];
}

/// The record as it is now; empty (`kFine`) again afterwards. The device is idle, so plain accesses
/// after the fence of `code` suffice.
StatusRecord take_record(StatusRecord& record) {
  const std::atomic_ref<int32_t> code(record.code);
  if (code.load(std::memory_order_acquire) == kFine) return {};
  const StatusRecord taken = record;
  record = {};
  return taken;
}

}   // namespace

int status_site(std::string_view what) {
  const std::lock_guard lock(sites().mutex);
  auto& names = sites().names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == what) return static_cast<int>(i);
  }
  names.emplace_back(what);
  return static_cast<int>(names.size()) - 1;
}

StatusRecord* device_status(StreamView stream) {
  return records().of(stream).device;
}

std::string describe(const StatusRecord& record) {
  const std::string site = site_name(record.site);
  switch (record.code) {
    case kOverCapacity:
      return detail::concatenate(site, ": ", record.needed, " needed, capacity ", record.capacity,
                                 ": give a larger capacity");
    case kOutsideLayout:
      return detail::concatenate(site, ": ", record.needed, " of ", record.capacity,
                                 " coordinates lie outside the declared bounds, or are no numbers: "
                                 "widen the bounds or drop these points");
    case kDuplicateRows:
      return detail::concatenate(site, ": ", record.needed, " of ", record.capacity,
                                 " rows have the coordinates of another row: name a reduction");
    case kBadRow:
      return detail::concatenate(
          site, record.row < 0 ? "" : detail::concatenate('[', record.row, ']'), " = ",
          record.needed, " is not a row; rows are 0 to ", record.capacity - 1, ", or -1 for none");
    case kBadNumber:
      return detail::concatenate(
          site, record.row < 0 ? "" : detail::concatenate('[', record.row, ']'), " = ",
          record.needed, " where there are ", record.capacity, ": give numbers from 0 on");
    case kPoisonedInput:
      return site + ": follows from rows of which more were needed than there was room for";
    case kSingleRow:
      return site +
             ": features has 1 row, which has no variance; train on at least 2 rows, or evaluate "
             "(model.eval() in Python)";
    default:
      return detail::concatenate(site, ": code ", record.code, ", ", record.needed, " beside ",
                                 record.capacity);
  }
}

void raise_status(StreamView stream) {
  const StatusRecord taken = take_record(*records().of(stream).host);
  PUMICE_EXPECTS(taken.code == kFine, describe(taken));
}

bool has_status(StreamView stream) {
  const std::atomic_ref<int32_t> code(records().of(stream).host->code);
  return code.load(std::memory_order_acquire) != kFine;
}

void copy_status(StreamView stream, std::int32_t* to) {
  const StatusRecord& record = *records().of(stream).host;
  const ContextGuard guard(stream.device);
  PUMICE_CUDA(
      cuMemcpyHtoDAsync_v2(address_of(to), &record.code, sizeof(record.code), handle_of(stream)));
}

void forget_status(StreamView stream) noexcept {
  const Slot slot = records().remove(stream);
  if (slot.host == nullptr) return;
  const StatusRecord taken = take_record(*slot.host);
  if (taken.code != kFine)
    warn("a stream of " + to_string(stream.device) + " went unwaited for: " + describe(taken));
  records().give_back(stream.device, slot);
}

}   // namespace pumice::cuda
