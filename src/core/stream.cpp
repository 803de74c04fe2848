// Streams and events over the driver; on the CPU they have nothing to do.
#include <pumice/core/stream.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cuda/context.hpp"
#include "core/cuda/status.hpp"

namespace pumice {
namespace {

bool is_cuda(Device device) {
  return device.kind == DeviceKind::cuda;
}

thread_local int refusals = 0;

cuda::EventHandle event_of(const Event& event) {
  return static_cast<cuda::EventHandle>(event.native());
}

}   // namespace

Stream::Stream(Device device) {
  view_.device = device;
  if (!is_cuda(device)) return;
  const cuda::ContextGuard guard(device);
  cuda::StreamHandle handle = nullptr;
  PUMICE_CUDA(cuStreamCreate(&handle, cuda::kStreamNonBlocking));
  view_.native = handle;
}

Stream::~Stream() {
  if (view_.native == nullptr) return;
  const cuda::Driver& driver = cuda::driver();
  // Kernels that still run report to a record that the next stream will get.
  const cuda::Result waited = driver.cuStreamSynchronize(cuda::handle_of(view_));
  if (waited == cuda::kDeinitialized) return;
  if (waited != cuda::kSuccess)
    warn("a stream of " + to_string(view_.device) + " ended with " + cuda::error_text(waited));
  cuda::forget_status(view_);
  driver.cuStreamDestroy_v2(cuda::handle_of(view_));
}

void Stream::wait() const {
  pumice::wait(view_);
}

RefusedWaits::RefusedWaits() {
  ++refusals;
}
RefusedWaits::~RefusedWaits() {
  --refusals;
}

void check_can_wait(StreamView stream) {
  PUMICE_EXPECTS(refusals == 0 || !is_cuda(stream.device), "the host would wait for ",
                 to_string(stream.device),
                 " here, to read a count or a result back, which a graph cannot do");
  PUMICE_EXPECTS(!is_capturing(stream),
                 "a stream cannot be waited for while it is captured into a graph: read counts and "
                 "copy results after the capture");
}

bool can_wait(StreamView stream) {
  return !is_cuda(stream.device) || (refusals == 0 && !is_capturing(stream));
}

void wait(StreamView stream) {
  if (!is_cuda(stream.device)) return;
  const cuda::ContextGuard guard(stream.device);
  check_can_wait(stream);
  const cuda::Result result = cuda::driver().cuStreamSynchronize(cuda::handle_of(stream));
  if (result != cuda::kSuccess) cuda::raise(result, "waiting for " + to_string(stream.device));
  cuda::raise_status(stream);
}

bool has_trouble(StreamView stream) {
  return is_cuda(stream.device) && cuda::has_status(stream);
}

void copy_trouble(StreamView stream, std::int32_t* to) {
  PUMICE_EXPECTS(is_cuda(stream.device), "copy_trouble: the stream is on ",
                 to_string(stream.device), ", where errors are raised at once");
  cuda::copy_status(stream, to);
}

bool is_capturing(StreamView stream) {
  // A null stream cannot be captured; asking about it while another one is spoils that capture.
  if (!is_cuda(stream.device) || stream.native == nullptr) return false;
  int state = cuda::kCaptureNone;
  PUMICE_CUDA(cuStreamIsCapturing(cuda::handle_of(stream), &state));
  return state != cuda::kCaptureNone;
}

std::uint64_t capture_of(StreamView stream) {
  if (!is_capturing(stream)) return 0;
  int state = cuda::kCaptureNone;
  std::uint64_t id = 0;
  const cuda::StreamHandle handle = cuda::handle_of(stream);
  // One of them is in every driver: the second came with CUDA 12.3.
  if (cuda::driver().cuStreamGetCaptureInfo_v2 != nullptr) {
    PUMICE_CUDA(cuStreamGetCaptureInfo_v2(handle, &state, &id, nullptr, nullptr, nullptr));
  } else {
    PUMICE_CUDA(cuStreamGetCaptureInfo_v3(handle, &state, &id, nullptr, nullptr, nullptr, nullptr));
  }
  return id;
}

Event::Event(Device device, bool timed) : device_(device) {
  if (!is_cuda(device)) return;
  const cuda::ContextGuard guard(device);
  cuda::EventHandle handle = nullptr;
  PUMICE_CUDA(cuEventCreate(&handle, timed ? 0 : cuda::kEventDisableTiming));
  native_ = handle;
}

Event::~Event() {
  if (native_ != nullptr) cuda::driver().cuEventDestroy_v2(event_of(*this));
}

void Event::record(StreamView stream) {
  PUMICE_EXPECTS(stream.device == device_, "an event of ", to_string(device_),
                 " recorded on a stream of ", to_string(stream.device));
  if (native_ == nullptr) return;
  const cuda::ContextGuard guard(device_);
  PUMICE_CUDA(cuEventRecord(event_of(*this), cuda::handle_of(stream)));
}

void Event::wait() const {
  if (native_ == nullptr) return;
  check_can_wait({device_, nullptr});
  const cuda::ContextGuard guard(device_);
  PUMICE_CUDA(cuEventSynchronize(event_of(*this)));
}

double milliseconds_between(const Event& from, const Event& to) {
  PUMICE_EXPECTS(from.native() != nullptr && to.native() != nullptr,
                 "the time between events is for two timed events of a CUDA device");
  float milliseconds = 0;
  PUMICE_CUDA(cuEventElapsedTime(&milliseconds, event_of(from), event_of(to)));
  return milliseconds;
}

void order_after(StreamView later, const Event& point) {
  if (point.native() == nullptr) return;
  PUMICE_EXPECTS(is_cuda(later.device), "the CPU cannot be ordered after a point of ",
                 to_string(point.device()), " without waiting: wait for it");
  const cuda::ContextGuard guard(later.device);
  PUMICE_CUDA(cuStreamWaitEvent(cuda::handle_of(later), event_of(point), 0));
}

void order_after(StreamView later, StreamView earlier) {
  if (later == earlier || !is_cuda(earlier.device)) return;
  Event point(earlier.device);
  point.record(earlier);
  order_after(later, point);
}

}   // namespace pumice
