"""`import torchsparse` where Pumice is installed and TorchSparse is not."""

PUMICE_SHIM = True

from pumice.compat import torchsparse as _torchsparse  # noqa: E402

_torchsparse.install()
