#include <pumice/skeleton/depthwise.h>
static_assert(sizeof(pumice::DepthwiseArguments) == 152);
PUMICE_KERNEL void __launch_bounds__(256)
depthwise(PUMICE_ARGUMENT(pumice::DepthwiseArguments) arguments) {
  pumice::wait_for_previous();
  pumice::depthwise<pumice::ElementType::f32, pumice::Write::slots>(arguments);
}
