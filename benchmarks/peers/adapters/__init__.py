"""Other libraries behind one interface (`library.Library`), a module each. None is needed to use Pumice; what cannot be
imported is left out, with a sentence."""

from __future__ import annotations

import importlib
import importlib.util

from .library import Absent, Library, Voxels

# In the order of tables: the name to ask for, the module here, and its class.
ADAPTERS = {
    "spconv": ("spconv_adapter", "Spconv"),
    "torchsparse": ("torchsparse_adapter", "TorchSparse"),
    "spconv-triton": ("spconv_triton_adapter", "SpconvTriton"),
    "warpconvnet": ("warpconvnet_adapter", "WarpConvNet"),
    "minkowski": ("minkowski_adapter", "Minkowski"),
    "flexgemm": ("flexgemm_adapter", "FlexGemm"),
}


def kind_of(name: str) -> type[Library]:
    """The class of a library, which is not imported for it."""
    module, kind = ADAPTERS[name]
    return getattr(importlib.import_module(f".{module}", __name__), kind)


def look_for(name: str) -> type[Library]:
    """Its class; Absent where it has a process of its own, which is not started for a package that is not there."""
    kind = kind_of(name)
    if kind.own_process and importlib.util.find_spec(kind.to_import) is None:
        raise Absent(f"{name} is left out: there is no package {kind.to_import}")
    return kind


def open_library(name: str) -> Library:
    """The library of that name in `ADAPTERS`; Absent, with the reason, where it cannot be imported."""
    try:
        return kind_of(name)()
    except Exception as error:  # libraries fail to load in ways of their own: no GPU, a missing .so, another version
        raise Absent(f"{name} is left out: import fails with {type(error).__name__}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """What an error says, in at most 200 characters."""
    return (str(error).strip().splitlines() or ["no message"])[0][:200]


__all__ = ["ADAPTERS", "Absent", "Library", "Voxels", "first_line", "kind_of", "look_for", "open_library"]
