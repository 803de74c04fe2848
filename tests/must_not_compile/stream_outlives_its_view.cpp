// Nor may a stream go before what it was given is done.
// fails with: deleted .*view
#include <pumice/core/stream.hpp>

void work(pumice::Device device) {
#ifdef PUMICE_MISUSE
  const pumice::StreamView view = pumice::Stream(device).view();
#else
  const pumice::Stream stream(device);
  const pumice::StreamView view = stream.view();
#endif
  pumice::wait(view);
}
