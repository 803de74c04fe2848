// One allocator a device. The GIL guards the tables.
#include "framework_allocator.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <pumice/core/block_cache.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>
#include <pumice/core/stream.hpp>

#include "names.hpp"

namespace pumice::python {
namespace {

std::atomic<bool> closed = false;

/// The largest block of a pass without gradients that is kept, and the part of a device's memory
/// that all of them may take.
constexpr std::size_t kLargestOfInference = std::size_t{64} << 20;
constexpr std::int64_t kPartForInference = 64;
/// How many InferenceMemory this thread has.
thread_local int inferring = 0;

class FrameworkAllocator final : public Allocator {
 public:
  explicit FrameworkAllocator(int device)
      : of_inference_(
            static_cast<std::size_t>(cuda_device_info(device).memory_bytes / kPartForInference)) {}

  void* allocate(std::size_t bytes, StreamView stream) override {
    const GilTaken gil;
    const bool is_small = BlockCache::takes(bytes);
    if (!is_small && (inferring == 0 || bytes > kLargestOfInference))
      return allocate_raw(bytes, stream);
    if (is_capturing(stream)) {   // memory of a graph, which must not go to anything else
      void* data = allocate_raw(bytes, stream);
      captured_.insert(data);
      return data;
    }
    if (!is_small) keeps_large_ = true;
    BlockCache& cache = is_small ? kept_ : of_inference_;
    if (void* data = cache.take(bytes, stream.native)) return data;
    void* data = allocate_raw(BlockCache::rounded(bytes), stream);
    if (!is_small) large_.insert(data);
    return data;
  }

  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    if (closed) return;
    const GilTaken gil;
    const bool was_captured = !captured_.empty() && captured_.erase(data) != 0;
    const bool is_small = BlockCache::takes(bytes);
    if (was_captured || !(is_small || (keeps_large_ && large_.contains(data)))) {
      drop(data);
      return;
    }
    BlockCache& cache = is_small ? kept_ : of_inference_;
    for (void* going : cache.keep(data, bytes, stream.native))
      drop(going);
  }

  /// Back to the framework.
  void release() {
    const GilTaken gil;
    for (void* data : kept_.release())
      free_raw(data);
    release_large();
  }
  /// Until a pass without gradients takes one again, large blocks go back as they become free.
  void release_large() {
    const GilTaken gil;
    keeps_large_ = false;
    for (void* data : of_inference_.release())
      drop(data);
  }
  std::size_t kept_bytes() const { return kept_.bytes() + of_inference_.bytes(); }

 private:
  void drop(void* data) noexcept {
    large_.erase(data);
    free_raw(data);
  }

  void* allocate_raw(std::size_t bytes, StreamView stream) {
    const auto native = reinterpret_cast<std::uintptr_t>(stream.native);
    const auto take = [&] { return framework().raw_allocate(bytes, native); };
    nb::object address;
    try {
      address = take();
    } catch (const nb::python_error& error) {
      if (!is_out_of_memory(error) || kept_bytes() == 0) throw;
      release();   // what is kept may be what it lacks
      address = take();
    }
    return address_in(address);
  }

  static void free_raw(void* data) noexcept {
    // A destructor may run while an exception of Python is on its way.
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    try {
      framework().raw_free(reinterpret_cast<std::uintptr_t>(data));
    } catch (const nb::python_error& error) {
      warn(std::string("memory not given back: ") + error.what());
    }
    PyErr_Restore(type, value, trace);
  }

  BlockCache kept_;
  BlockCache of_inference_;
  bool keeps_large_ = false;
  std::unordered_set<const void*> large_;      // of passes without gradients, kept ones too
  std::unordered_set<const void*> captured_;   // blocks of graphs
};

using Allocators = std::unordered_map<int, std::shared_ptr<FrameworkAllocator>>;

/// By index.
Allocators& allocators() {
  static auto& all = *new Allocators;
  return all;
}

const std::shared_ptr<FrameworkAllocator>& allocator_of(Device device) {
  std::shared_ptr<FrameworkAllocator>& allocator = allocators()[device.index];
  if (allocator == nullptr) allocator = std::make_shared<FrameworkAllocator>(device.index);
  return allocator;
}

}   // namespace

std::shared_ptr<Allocator> framework_allocator(Device device) {
  return allocator_of(device);
}

bool is_out_of_memory(const nb::python_error& error) {
  if (error.matches(PyExc_MemoryError)) return true;
  const nb::object name = error.type().attr("__name__");   // PyTorch's own, a RuntimeError
  return PyUnicode_CompareWithASCIIString(name.ptr(), "OutOfMemoryError") == 0;
}

InferenceMemory::InferenceMemory(bool applies) : applies_(applies) {
  inferring += applies_ ? 1 : 0;
}

InferenceMemory::~InferenceMemory() {
  inferring -= applies_ ? 1 : 0;
}

void release_inference_memory(Device device) {
  if (device.kind == DeviceKind::cuda) allocator_of(device)->release_large();
}

void release_device_memory() {
  std::vector<std::shared_ptr<FrameworkAllocator>> all;   // who frees may let others run
  for (const auto& [index, allocator] : allocators())
    all.push_back(allocator);
  for (const auto& allocator : all)
    allocator->release();
}

std::size_t kept_device_bytes() {
  std::size_t bytes = 0;
  for (const auto& [index, allocator] : allocators())
    bytes += allocator->kept_bytes();
  return bytes;
}

nb::object new_empty(nb::handle like, const Shape& shape, DType dtype) {
  const nb::handle type = framework().dtypes[static_cast<std::size_t>(dtype)];
  static PyObject* keywords = PyTuple_Pack(1, names().dtype_argument);
  // Its own type need not be said, which saves PyTorch reading it.
  const bool is_own = attribute(like, names().dtype).ptr() == type.ptr();
  // like.new_empty(rows, channels) takes PyTorch 0.8 us on a CPU, new_empty((rows, channels)) 1.3.
  std::array<nb::object, Shape::kMaxRank> extents;
  std::array<PyObject*, Shape::kMaxRank + 2> arguments{like.ptr()};
  std::size_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    nb::object& extent = extents[static_cast<std::size_t>(axis)];
    extent = nb::steal(PyLong_FromLongLong(shape[axis]));
    arguments[count++] = extent.ptr();
  }
  if (shape.rank() == 0) {   // which no number says
    extents[0] = nb::steal(PyTuple_New(0));
    arguments[count++] = extents[0].ptr();
  }
  arguments[count] = type.ptr();
  PyObject* made = nb::detail::vectorcall_method(names().new_empty, arguments.data(), count,
                                                 is_own ? nullptr : keywords);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

void close_framework() {
  closed = true;
}

bool framework_is_closed() {
  return closed;
}

}   // namespace pumice::python
