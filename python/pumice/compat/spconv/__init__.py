"""The interface of spconv 2, computed by Pumice.

Import it in spconv's place::

    import pumice.compat.spconv as spconv          # was: import spconv.pytorch as spconv

or let unmodified code find it under the old name::

    import pumice.compat.spconv
    pumice.compat.spconv.install()
    import spconv.pytorch as spconv
"""

from __future__ import annotations

from typing import Any

from .. import foreign
from . import constants, core, cppconstants, cumm, pytorch, test_utils, tools, utils
from .core import AlgoHint, ConvAlgo
from .pytorch import *  # noqa: F403
from .version import SPCONV_VERSION_NUMBERS, __version__

__all__ = [
    *pytorch.__all__,
    "SPCONV_VERSION_NUMBERS",
    "constants",
    "core",
    "cppconstants",
    "cumm",
    "install",
    "pytorch",
    "test_utils",
    "tools",
    "utils",
]


def install() -> None:
    """From here on `import spconv`, `import spconv.pytorch` and `import cumm.tensorview` give these
    modules, in this process.

    Raises UserError where the real spconv has been imported already. Processes that are spawned
    start anew: install python/shims/spconv for them.
    """
    foreign.install_packages({"spconv": __name__, "cumm": cumm.__name__})


def __getattr__(name: str) -> Any:
    for module in (pytorch.utils, pytorch.functional, pytorch.ops, utils):
        if not name.startswith("_") and hasattr(module, name):
            place = module.__name__.replace(__name__, "spconv")
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it is in {place}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
