// The view of a map is spans of its lists.
// fails with: deleted .*view
#include <pumice/maps/kernel_map.hpp>

std::int64_t pairs_of(pumice::KernelWindow window, pumice::CoordinateSetPtr set,
                      pumice::KernelPairs pairs) {
#ifdef PUMICE_MISUSE
  return pumice::KernelMap(window, set, set, std::move(pairs), false).view().pairs();
#else
  const pumice::KernelMap map(window, set, set, std::move(pairs), false);
  return map.view().pairs();
#endif
}
