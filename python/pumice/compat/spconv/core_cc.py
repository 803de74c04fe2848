"""Refuses: `spconv.core_cc` is spconv's own C++."""

raise ImportError(
    "spconv.core_cc (spconv's own C++) is not there in pumice.compat: what Python can call lies in "
    "spconv.pytorch.ops"
)
