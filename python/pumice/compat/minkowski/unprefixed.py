"""MinkowskiEngine's modules without its name: `from MinkowskiOps import MinkowskiLinear`.

MinkowskiEngine appends its own folder to sys.path when it is imported, so its modules are found under their bare
names wherever nothing else has these. A finder at the end of sys.meta_path does the same, and gives the very
modules that the prefixed names give.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

SUBMODULES = (
    "MinkowskiBroadcast", "MinkowskiChannelwiseConvolution", "MinkowskiCommon", "MinkowskiConvolution",
    "MinkowskiCoordinateManager", "MinkowskiFunctional", "MinkowskiInterpolation",
    "MinkowskiKernelGenerator", "MinkowskiNetwork", "MinkowskiNonlinearity", "MinkowskiNormalization",
    "MinkowskiOps", "MinkowskiPooling", "MinkowskiPruning", "MinkowskiSparseTensor", "MinkowskiTensor",
    "MinkowskiTensorField", "MinkowskiUnion", "diagnostics", "modules", "sparse_matrix_functions", "utils",
)  # fmt: skip
# Is installed beside MinkowskiEngine, not in its folder.
EXTENSION = "MinkowskiEngineBackend"


class Unprefixed(MetaPathFinder, Loader):
    """Finds the modules of `package` under their bare names, and what is loaded inside each with it."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in (*SUBMODULES, EXTENSION) else None

    def exec_module(self, module: ModuleType) -> None:
        bare = module.__name__
        own = f"{self.package}.{bare}"
        importlib.import_module(own)
        for name, loaded in list(sys.modules.items()):
            if name == own or name.startswith(f"{own}."):
                sys.modules[bare + name[len(own) :]] = loaded


def find_unprefixed(package: str) -> None:
    """From here on bare names that nobody else has find the modules of `package`."""
    if not any(isinstance(finder, Unprefixed) for finder in sys.meta_path):
        sys.meta_path.append(Unprefixed(package))
