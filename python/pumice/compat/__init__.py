"""Other libraries' interfaces on Pumice's operators.

    import pumice.compat.torchsparse as torchsparse        # in code of your own
    pumice.compat.install("torchsparse")                   # for code that imports the old name
"""

from __future__ import annotations

import importlib

from .. import _needs_torch  # noqa: F401, I001  (first, since it says what is missing)
from .. import _C
from ..nn import deferred

_PACKAGES = {
    "spconv": "pumice.compat.spconv",
    "torchsparse": "pumice.compat.torchsparse",
    "MinkowskiEngine": "pumice.compat.minkowski",
}


def install(*names: str) -> None:
    """From here on `import NAME` finds Pumice's package of that interface, in this process.

    Args:
        names: of "spconv", "torchsparse" and "MinkowskiEngine".
    Returns:
        None.
    Raises:
        UserError: for another name.
    Waits:
        Never.
    Example:
        >>> pumice.compat.install("torchsparse")
        >>> import torchsparse
        >>> torchsparse.SparseTensor.__module__
        'pumice.compat.torchsparse.tensor'
    """
    for name in names:
        if name not in _PACKAGES:
            raise _C.UserError(f"{name!r} has no equal here: there are {', '.join(_PACKAGES)}")
        importlib.import_module(_PACKAGES[name]).install()


def defer_layers(defers: bool) -> None:
    """Whether layers of these interfaces may compute later than they are called, together with others.

    They do so by default, inside of one call of the outermost module: a convolution without a bias waits for the batch
    norm, the sum and the ReLU behind it, and for the convolutions behind those, until somebody reads what they make or
    the call returns; results and gradients are the same.

    Args:
        defers: False: every layer computes when it is called.
    Returns:
        None.
    Raises:
        Nothing.
    Waits:
        Never.
    Example:
        >>> pumice.compat.defer_layers(False)
        >>> pumice.compat.defer_layers(True)
    """
    deferred.switch.defers = defers


__all__ = ["defer_layers", "install"]
