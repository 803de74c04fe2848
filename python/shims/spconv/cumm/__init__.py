"""Stands where cumm would: importing it puts pumice.compat.spconv in its place."""

PUMICE_SHIM = True

import pumice.compat.spconv  # noqa: E402

pumice.compat.spconv.install()
