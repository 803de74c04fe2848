// Times are the clock's on the CPU and events' on a device, where the clock would count launches.
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/stream.hpp>

#include "core/printable.hpp"
#include "statistics.hpp"

namespace pumice::cli {
namespace {

double time_once(StreamView stream, const std::function<void()>& call) {
  if (stream.device.kind == DeviceKind::cpu) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }
  Event start(stream.device, true), stop(stream.device, true);
  start.record(stream);
  call();
  stop.record(stream);
  wait(stream);
  return milliseconds_between(start, stop);
}

}   // namespace

Spread measure(int repeat, StreamView stream, const std::function<void()>& call) {
  call();
  wait(stream);
  std::vector<double> samples;
  for (int i = 0; i < repeat; ++i)
    samples.push_back(time_once(stream, call));
  const auto [min, max] = std::ranges::minmax(samples);
  return {.median = median(samples), .min = min, .max = max};
}

Tensor random_tensor(Shape shape, DType dtype, std::uint64_t seed) {
  Tensor values(shape, DType::f32);
  float* data = values.data<float>();
  parallel_for(shape.elements(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    Random random(seed, static_cast<std::uint64_t>(begin));
    for (std::int64_t i = begin; i < end; ++i)
      data[i] = static_cast<float>(random.uniform(-1, 1));
  });
  return values.to(dtype);
}

double copy_ms(double bytes, int repeat, StreamView stream) {
  constexpr double kMost = 256 << 20;
  const auto size = static_cast<std::int64_t>(std::min(bytes, kMost));
  if (size == 0) return 0;
  // Written before they are read: pages that nobody wrote are one page of zeros.
  const Tensor from = copy_to(stream, Tensor::zeros({size / 4 + 1}, DType::f32));
  Tensor to = copy_to(stream, from);
  const auto copy = [&] {
    if (stream.device.kind != DeviceKind::cpu)
      return copy_async(to.raw(), stream.device, from.raw(), stream.device,
                        static_cast<std::size_t>(size), stream);
    parallel_for(size, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(static_cast<std::byte*>(to.raw()) + begin,
                  static_cast<const std::byte*>(from.raw()) + begin,
                  static_cast<std::size_t>(end - begin));
    });
  };
  return measure(repeat, stream, copy).median * bytes / static_cast<double>(size);
}

std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return "unknown";
}

std::string model_of(Device device) {
  return printable(device.kind == DeviceKind::cpu ? proc_value("/proc/cpuinfo", "model name")
                                                  : cuda_device_info(device.index).name);
}

}   // namespace pumice::cli
