"""TorchSparse 2.1's interface: SparseTensor, nn, nn.functional, utils.

Coordinates are (batch, x, y, z), divided at every downsampling. `use_version("2.0")` goes back to what
releases before 2.1 had: (x, y, z, batch), in cells of the finest level.
"""

from __future__ import annotations

from .. import foreign
from . import backends, nn, operators, tensor, utils
from .conventions import use_version
from .operators import cat, generative_add
from .tensor import PointTensor, SparseTensor

__version__ = "2.1.0"


def install(version: str = "2.1") -> None:
    """From here on `import torchsparse` finds this package, in this process."""
    use_version(version)
    foreign.install_packages({"torchsparse": __name__})


__all__ = ["PointTensor", "SparseTensor", "cat", "generative_add", "install", "use_version"]
