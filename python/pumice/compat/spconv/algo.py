"""Refuses: `spconv.algo` has no meaning here."""

raise ImportError("spconv.algo (tuners of cumm's kernels) is not there in pumice.compat")
