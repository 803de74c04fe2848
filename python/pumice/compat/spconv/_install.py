"""Standing in for spconv under its own name."""

from __future__ import annotations

import sys
from types import ModuleType

from .. import spconv as compat
from . import constants, core, cumm, pytorch, utils
from .pytorch import conv, functional, hash, identity, layers, modules, ops, pool, tables
from .pytorch import core as pytorch_core
from .pytorch import utils as pytorch_utils

_MODULES: dict[str, ModuleType] = {
    "spconv": compat,
    "spconv.constants": constants,
    "spconv.core": core,
    "spconv.utils": utils,
    "spconv.pytorch": pytorch,
    "spconv.pytorch.conv": conv,
    "spconv.pytorch.core": pytorch_core,
    "spconv.pytorch.functional": functional,
    "spconv.pytorch.hash": hash,
    "spconv.pytorch.identity": identity,
    "spconv.pytorch.layers": layers,
    "spconv.pytorch.modules": modules,
    "spconv.pytorch.ops": ops,
    "spconv.pytorch.pool": pool,
    "spconv.pytorch.tables": tables,
    "spconv.pytorch.utils": pytorch_utils,
    "cumm": cumm,
    "cumm.tensorview": cumm.tensorview,
    "cumm.tensorview.gemm": cumm.tensorview.gemm,
}


def install() -> None:
    """From here on `import spconv`, `import spconv.pytorch` and `import cumm.tensorview` give
    Pumice's modules, in this process.

    Raises UserError where the real spconv has been imported already. Processes that are spawned
    start anew: install python/shims/spconv for them.
    """
    from ... import _C

    for name in ("spconv", "cumm"):
        loaded = sys.modules.get(name)
        if loaded in (None, _MODULES[name]) or hasattr(loaded, "PUMICE_SHIM"):
            continue
        raise _C.UserError(
            f"{name} is imported already, from {getattr(loaded, '__file__', None)}: call "
            "pumice.compat.spconv.install() before anything that imports it"
        )
    sys.modules.update(_MODULES)
