"""A plug-in of pytest: everything as spconv does it, also where Pumice does otherwise by default."""

import pumice.compat.spconv as spconv

for name in (
    "MAX_POOL_FROM_ZERO",
    "AVG_POOL_GRADIENT_TIMES_COUNT",
    "GLOBAL_AVG_POOL_FIRST_CHANNEL",
    "EVAL_IGNORES_AUTOCAST",
    "REFUSE_AS_SPCONV",
):
    assert hasattr(spconv.constants, name)
    setattr(spconv.constants, name, True)
