#include <pumice/skeleton/finish_pairs.h>
#include <pumice/skeleton/finish_partial.h>
static_assert(sizeof(pumice::FinishArguments) == 96);
static_assert(sizeof(pumice::FinishPairsArguments) == 96);
PUMICE_KERNEL void finish_partial(PUMICE_ARGUMENT(pumice::FinishArguments) arguments) {
  pumice::wait_for_previous();
  pumice::finish_partial<pumice::ElementType::bf16>(arguments);
}
PUMICE_KERNEL void finish_pairs(PUMICE_ARGUMENT(pumice::FinishPairsArguments) arguments) {
  pumice::wait_for_previous();
  pumice::finish_pairs<pumice::ElementType::bf16>(arguments);
}
