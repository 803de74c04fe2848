#include <pumice/skeleton/gather_scatter.h>
static_assert(sizeof(pumice::GatherRowsArguments) == 40);
static_assert(sizeof(pumice::ScatterAddArguments) == 40);
