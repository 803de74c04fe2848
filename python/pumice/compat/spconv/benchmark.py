"""Refuses: spconv times itself on a scan that it downloads."""

raise ImportError(
    "spconv.benchmark (spconv's timings of itself) is not there in pumice.compat: `pumice bench` times "
    "layers and networks"
)
