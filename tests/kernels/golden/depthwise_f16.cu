#include <pumice/skeleton/depthwise.h>
#include <pumice/skeleton/depthwise_gradient.h>
static_assert(sizeof(pumice::DepthwiseArguments) == 152);
static_assert(sizeof(pumice::DepthwiseGradientArguments) == 80);
PUMICE_KERNEL void __launch_bounds__(256)
depthwise(PUMICE_ARGUMENT(pumice::DepthwiseArguments) arguments) {
  pumice::wait_for_previous();
  pumice::depthwise<pumice::ElementType::f16>(arguments);
}
PUMICE_KERNEL void __launch_bounds__(256)
depthwise_gradient(PUMICE_ARGUMENT(pumice::DepthwiseGradientArguments) arguments) {
  pumice::wait_for_previous();
  pumice::depthwise_gradient<pumice::ElementType::f16>(arguments);
}
