// Enumerations of plans count from 0 each, and one is not the other.
// fails with: (cannot convert|no viable conversion|could not convert|no matching function)
#include <pumice/plan/choose.hpp>

std::string_view word() {
#ifdef PUMICE_MISUSE
  const pumice::Dataflow dataflow = pumice::Direction::forward;
#else
  const pumice::Dataflow dataflow = pumice::Dataflow::implicit_gemm;
#endif
  return pumice::name_of(dataflow);
}
