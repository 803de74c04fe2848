"""`import MinkowskiEngine` where Pumice is installed and MinkowskiEngine is not."""

PUMICE_SHIM = True

from pumice.compat import minkowski as _minkowski  # noqa: E402

_minkowski.install()
