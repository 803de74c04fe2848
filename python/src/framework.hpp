// The tensor framework on the other side (PyTorch), reached through its Python functions alone: no
// header and no library of it, so its version does not matter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <nanobind/nanobind.h>
#include <pumice/core/allocator.hpp>
#include <pumice/core/results.hpp>

#include "gil.hpp"
#include "tensor_look.hpp"

namespace pumice::python {

namespace nb = nanobind;

/// What `pumice._framework` hands over once. Null handles until then.
struct Framework {
  std::array<nb::handle, 8> dtypes{};   // the framework's, in the order of DType
  nb::handle cut;                       // (flat tensor, tensors) -> views of it, shaped like them
  nb::handle is_negated;                // (tensor) -> bool
  nb::handle describe;                  // (object) -> why it is no tensor that kernels can take
  nb::handle forward_ad;                // names of the module of forward-mode differentiation
  nb::handle has_derivative;            // (tensor) -> bool, of that mode
  nb::handle learns;                    // () -> whether gradients are noted
  nb::handle raw_allocate;              // (bytes, stream) -> address, on the current device
  nb::handle raw_free;                  // (address)
  nb::handle current_stream;            // (device index) -> address of a CUstream
  nb::handle current_device;            // () -> device index
  nb::handle set_device;                // (device index)

  bool ready() const { return dtypes[0].is_valid(); }
  bool has_device() const { return raw_allocate.is_valid(); }
  /// UserError, naming the tensor, for a type that Pumice does not take.
  DType dtype_of(nb::handle framework_dtype, const char* name) const;
};

/// The one of this process; used with the GIL.
Framework& framework();

/// Whether the framework records gradients of what is called now: not under torch.no_grad().
bool records_gradients();

/// Looks at a tensor of the framework; UserError where it is not contiguous. `name` is for the
/// message. None gives an undefined view. Its sign is not asked for: that is known, or not looked
/// at.
ConstTensorView view_of(nb::handle tensor, const char* name, StreamView stream);
/// To write into: a negated view is refused.
TensorView mutable_view_of(nb::handle tensor, const char* name, StreamView stream);
/// Of a tensor of one element, which the framework gives no axis: [1].
TensorView single_view_of(nb::handle tensor, const char* name, StreamView stream);

/// Results as tensors that `like.new_empty` makes, so that storage, streams and statistics are the
/// framework's, and a result is handed out without a copy. May be asked without the GIL.
class FrameworkResults final : public Results {
 public:
  explicit FrameworkResults(nb::handle like) : like_(like) {}
  Tensor make(const Shape& shape, DType dtype, StreamView stream) override;

 private:
  nb::handle like_;
};

/// One call into Pumice on behalf of tensors on one device: its stream is the framework's current
/// one there, its memory is the framework's, and the framework's current device is that one for as
/// long as the call lasts.
class Call {
 public:
  /// `like` says which device; tensors that come back are made by its new_empty.
  explicit Call(nb::handle like);
  /// For work that has no tensor at hand.
  explicit Call(Device device);
  /// The same with sites or a map, whose memory belongs to the stream `home`: where that is not the
  /// framework's current stream, the call runs there, after what the current one holds, and the
  /// current one goes on after it. While the current one is being recorded into a CUDA graph that
  /// `home` is no part of, the call stays where it is: what was made before the recording is
  /// finished, as torch.cuda.graph waits for it, and a recording cannot be joined by another
  /// stream.
  Call(nb::handle like, StreamView home) : Call(like) { run_on(home); }
  /// The same where there may be none of these.
  Call(nb::handle like, std::optional<StreamView> home) : Call(like) {
    if (home) run_on(*home);
  }
  Call(Device device, StreamView home) : Call(device) { run_on(home); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  StreamView stream() const { return stream_; }
  bool on_cpu() const { return stream_.device.kind == DeviceKind::cpu; }
  /// Of the values of any dense tensor: what does not lie in memory as its values are, one after
  /// the other, is brought into such memory, which lives as long as the call.
  ConstTensorView view(nb::handle tensor, const char* name) const;
  /// The same of [rows, channels]; UserError for other shapes.
  ConstTensorView matrix(nb::handle tensor, const char* name) const;

  /// What makes the results that the call hands out. All else that is made in it is temporary.
  FrameworkResults& results() const { return results_; }
  /// Runs `work`, on the CPU without the GIL. (On a device it mostly enqueues, and giving the GIL
  /// away costs more than the work; where sites are counted, it waits with it.)
  template <class Work> auto run(Work&& work) const {
    if (!on_cpu()) return work();
    const GilReleased released;
    return work();
  }
  /// A result as a tensor of the framework: the one that `results` made it as, else one that shares
  /// its memory.
  nb::object give(const Tensor& result) const;

 private:
  void run_on(StreamView home);

  nb::handle like_{};
  bool differentiates_forward_ = pumice::python::differentiates_forward();
  StreamView stream_{};
  std::optional<StreamView> caller_{};   // whose work went before, where it runs on another stream
  int device_before_ = -1;
  std::optional<AllocatorScope> scope_{};
  mutable FrameworkResults results_;
  mutable std::vector<nb::object> resolved_{};   // what views look at
};

/// Shares `tensor` with the framework, which then keeps it alive.
nb::object share(const Tensor& tensor);
/// The same as an array of NumPy, of a tensor on the host.
nb::object share_with_numpy(const Tensor& tensor);

void bind_framework(nb::module_& module);

}   // namespace pumice::python
