// Memory on a device holds bytes: a buffer constructs no elements and destroys none.
// fails with: elements are never constructed
#include <string>

#include <pumice/core/buffer.hpp>

#ifdef PUMICE_MISUSE
using Element = std::string;
#else
using Element = char;
#endif

std::int64_t size_of(const pumice::Buffer<Element>& buffer) {
  return buffer.size();
}
