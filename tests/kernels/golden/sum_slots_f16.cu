#include <pumice/skeleton/sum_slots.h>
static_assert(sizeof(pumice::SumSlotsArguments) == 88);
PUMICE_KERNEL void sum_slots(PUMICE_ARGUMENT(pumice::SumSlotsArguments) arguments) {
  pumice::wait_for_previous();
  pumice::sum_slots<pumice::ElementType::f16>(arguments);
}
