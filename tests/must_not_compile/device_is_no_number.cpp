// Which kind of device the 1 is, nobody would know.
// fails with: (could not convert|cannot convert|cannot initialize|no viable conversion) .*
#include <pumice/core/device.hpp>

bool is_second(pumice::Device device) {
#ifdef PUMICE_MISUSE
  return device == pumice::Device{1};
#else
  return device == pumice::Device{pumice::DeviceKind::cuda, 1};
#endif
}
