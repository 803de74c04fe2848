// A stream is destroyed by its one owner.
// fails with: deleted .*Stream
#include <pumice/core/stream.hpp>

void work(const pumice::Stream& stream) {
#ifdef PUMICE_MISUSE
  const pumice::Stream own = stream;
#else
  const pumice::StreamView own = stream;
#endif
  pumice::wait(own);
}
