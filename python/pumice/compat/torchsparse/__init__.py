"""TorchSparse 2.1's interface: SparseTensor, nn, nn.functional, backbones, utils.

Coordinates are (batch, x, y, z), divided at every downsampling. `use_version("2.0")` goes back to what
releases before 2.1 had: (x, y, z, batch), in cells of the finest level, and their order of arguments.
"""

from __future__ import annotations

from .. import foreign
from . import backends, utils  # noqa: I001  (in the order in which they need each other)
from . import tensor, operators, nn, backend, backbones, planned, version
from .conventions import use_border, use_version
from .operators import cat, generative_add
from .tensor import PointTensor, SparseTensor
from .utils.tune import tune
from .version import __version__


def install(version: str | None = None) -> None:
    """From here on `import torchsparse` finds this package, in this process.

    version: of the release that the code was written for, as `use_version` takes it.
    """
    if version is not None:
        use_version(version)
    foreign.install_packages({"torchsparse": __name__})


__all__ = [
    "PointTensor",
    "SparseTensor",
    "cat",
    "generative_add",
    "install",
    "tune",
    "use_border",
    "use_version",
]
