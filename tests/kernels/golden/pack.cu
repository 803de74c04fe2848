#include <pumice/skeleton/pack_weight.h>
static_assert(sizeof(pumice::PackWeightArguments) == 64);
static_assert(sizeof(pumice::PackWeightsArguments) == 2048);
