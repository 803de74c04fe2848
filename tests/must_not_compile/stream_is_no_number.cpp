// A stream has a device: the 0 of CUDA's interfaces, which is the default stream of any, is none.
// fails with: (could not convert|cannot convert|no viable conversion|conversion from) .*int
#include <pumice/core/stream.hpp>

void work() {
#ifdef PUMICE_MISUSE
  pumice::wait(0);
#else
  pumice::wait({});
#endif
}
