// The tests' kernels on the host: what a device would do for each launched thread.
#include <cstring>

#include "fake_driver/fake.hpp"
#include "jit/launch_kernels.hpp"

namespace pumice::fake {
namespace {

std::int64_t threads_of(const cuda::LaunchConfig& config) {
  return static_cast<std::int64_t>(config.grid_x) * config.block_x;
}

template <class Arguments> Arguments read(const void* bytes) {
  Arguments arguments;
  std::memcpy(&arguments, bytes, sizeof(Arguments));
  return arguments;
}

}   // namespace

std::size_t argument_bytes(const std::string& name) {
  if (name == "saxpy") return sizeof(test::SaxpyArguments);
  if (name == "report_overflow") return sizeof(test::OverflowArguments);
  if (name == "double_values") return sizeof(test::DoubleArguments);
  return 0;
}

Work work_of(const std::string& name, const void* bytes, const cuda::LaunchConfig& config) {
  const std::int64_t threads = threads_of(config);
  if (name == "saxpy") {
    return [a = read<test::SaxpyArguments>(bytes), threads] {
      for (std::int64_t i = 0; i < threads && i < a.size; ++i)
        a.y[i] += a.a * a.x[i];
    };
  }
  if (name == "report_overflow") {
    return [a = read<test::OverflowArguments>(bytes)] {
      if (a.status->claim++ != 0) return;
      a.status->site = a.site;
      a.status->needed = a.needed;
      a.status->capacity = a.capacity;
      a.status->code = kOverCapacity;
    };
  }
  return [a = read<test::DoubleArguments>(bytes), threads] {
    for (std::int64_t i = 0; i < threads && i < a.size; ++i)
      a.values[i] *= 2;
  };
}

}   // namespace pumice::fake
