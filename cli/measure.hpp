// How long calls take here, and on what machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <pumice/core/device.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice::cli {

/// Milliseconds of repeated calls: the one in the middle and the extremes.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Of `repeat` (at least 1) calls after one that warms up. On the CPU by the clock; on a device
/// from the first to the last that it does for a call. Waits for `stream`, and raises what went
/// wrong there.
Spread measure(int repeat, StreamView stream, const std::function<void()>& call);

/// On the CPU, evenly from -1 to 1; the same for any number of threads.
Tensor random_tensor(Shape shape, DType dtype, std::uint64_t seed);

/// Milliseconds that a copy of as many bytes takes where `stream` runs, by all threads on the CPU:
/// the median of `repeat`. Of more than 256 MiB it is that of 256 MiB, as often as needed. Waits.
double copy_ms(double bytes, int repeat, StreamView stream);

/// The value of the first line of /proc/cpuinfo or /proc/meminfo that begins with `key`; "unknown"
/// where there is none.
std::string proc_value(const char* path, const std::string& key);

/// What a device is called by who made it, printable. UserError where there is no such device.
std::string model_of(Device device);

}   // namespace pumice::cli
