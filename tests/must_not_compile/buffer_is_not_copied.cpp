// A buffer gives its memory back once: it moves and is not copied.
// fails with: deleted .*Buffer
#include <pumice/core/buffer.hpp>

pumice::Buffer<float> pass_on(pumice::Buffer<float>& buffer) {
#ifdef PUMICE_MISUSE
  return buffer;
#else
  return std::move(buffer);
#endif
}
