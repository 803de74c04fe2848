// Queues of work on a device, and the order between them.
#pragma once

#include <cstdint>
#include <utility>

#include <pumice/core/device.hpp>

namespace pumice {

/// Owns a stream that runs beside all others of its device. On the CPU there is nothing to own.
/// The last reference to memory allocated on a stream goes before the stream does.
class Stream {
 public:
  explicit Stream(Device device);
  Stream(Stream&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~Stream();

  StreamView view() const& { return view_; }
  StreamView view() const&& = delete;   // of a temporary, which is gone before its work is done
  operator StreamView() const { return view_; }   // NOLINT(google-explicit-constructor)
  Device device() const { return view_.device; }
  /// As `pumice::wait`.
  void wait() const;

 private:
  StreamView view_{};
};

/// Waits until everything enqueued on `stream` is done, and raises what went wrong on it since the
/// last wait: UserError with the numbers for a capacity exceeded or a coordinate out of bounds,
/// Error for CUDA's own errors. UserError while the stream is being captured.
void wait(StreamView stream);

/// UserError where `wait` would refuse, for those who enqueue something before they wait.
void check_can_wait(StreamView stream);
/// Whether `wait` would not refuse.
bool can_wait(StreamView stream);

/// Whether kernels have reported trouble to `stream`, for which `wait` would raise: a look at a
/// word of host memory, which does not wait. What is enqueued may still report.
bool has_trouble(StreamView stream);

/// Writes to `to`, on the device of `stream`, what `has_trouble` says once the stream has come to
/// it: 0 where it says no, another number where it says yes. Does not wait, and graphs can hold it.
/// UserError on the CPU.
void copy_trouble(StreamView stream, std::int32_t* to);

/// As long as it lives, `wait` and whatever else would wait for a device on this thread raises
/// UserError instead: to find out before a recording what could not be recorded, and to prove that
/// nothing waits.
class RefusedWaits {
 public:
  RefusedWaits();
  ~RefusedWaits();
  RefusedWaits(const RefusedWaits&) = delete;
  RefusedWaits& operator=(const RefusedWaits&) = delete;
};

/// Whether what is enqueued on `stream` is recorded into a graph instead of run.
bool is_capturing(StreamView stream);
/// The number of the recording that `stream` takes part in, another for each; 0: none.
std::uint64_t capture_of(StreamView stream);

/// A point in a stream's work.
class Event {
 public:
  /// A timed one can be given to `milliseconds_between`; an untimed one costs less.
  explicit Event(Device device, bool timed = false);
  Event(Event&& other) noexcept
      : device_(other.device_), native_(std::exchange(other.native_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(native_, other.native_);
    return *this;
  }
  ~Event();

  Device device() const { return device_; }
  void* native() const { return native_; }
  /// Moves the point to behind what `stream` has been given so far.
  void record(StreamView stream);
  /// Waits on the host for the point to be reached.
  void wait() const;

 private:
  Device device_{};
  void* native_ = nullptr;
};

/// Between two timed events that have been reached.
double milliseconds_between(const Event& from, const Event& to);

/// What `later` is given from now on runs after what `earlier` has been given so far. The host does
/// not wait.
void order_after(StreamView later, StreamView earlier);
/// The same, after a point recorded before.
void order_after(StreamView later, const Event& point);

}   // namespace pumice
