// A shape of floats is a mistake in the arithmetic before it.
// fails with: (narrowing|cannot be narrowed)
#include <pumice/core/tensor.hpp>

pumice::Shape half_of_a_scan() {
#ifdef PUMICE_MISUSE
  return {91767 * 0.5, 3};
#else
  return {91767 / 2, 3};
#endif
}
