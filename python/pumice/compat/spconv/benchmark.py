"""Refuses: `spconv.benchmark` has no meaning here."""

raise ImportError("spconv.benchmark (timings of spconv itself: pumice bench measures networks, and make bench layers) is not there in pumice.compat")
