"""Refuses: there are no kernels of cumm to tune."""

raise ImportError(
    "spconv.algo (tuners of cumm's kernels) is not there in pumice.compat: Pumice chooses its kernels "
    "itself"
)
