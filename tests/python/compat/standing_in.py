"""Code of other projects, for the length of a test: from the folder PUMICE_FOREIGN, unmodified, with
Pumice under the names it imports, and stand-ins for what else it imports.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

import pumice.compat

# What a test may leave in sys.modules, and another must not find there.
_FOREIGN = {
    "spconv", "cumm", "torchsparse", "spunet", "pcdet", "pointcept", "trellis", "flash_attn", "xformers",
    "vox2seq", "torch_geometric", "timm",
}  # fmt: skip


def checkout(name: str) -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("PUMICE_FOREIGN", ""))
    if not os.environ.get("PUMICE_FOREIGN") or not (folder / name).is_dir():
        pytest.skip(f"PUMICE_FOREIGN names no folder with a checkout of {name}")
    return folder / name


@contextmanager
def forgotten_afterwards() -> Iterator[None]:
    """What is imported of other projects inside is imported anew by the next."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            if name.split(".")[0] in _FOREIGN:
                del sys.modules[name]


@contextmanager
def by_name(*names: str) -> Iterator[None]:
    """Pumice under the names of other libraries."""
    with forgotten_afterwards():
        pumice.compat.install(*names)
        yield


def stand_in(name: str, **content: object) -> ModuleType:
    """A module of that name which holds `content` too, until what is imported is forgotten."""
    module = sys.modules.setdefault(name, ModuleType(name))
    module.__dict__.update(content)
    above, _, last = name.rpartition(".")
    if above in sys.modules:
        setattr(sys.modules[above], last, module)
    return module


def bare_package(name: str, folder: pathlib.Path) -> None:
    """The package without what its __init__.py would import."""
    stand_in(name, __path__=[str(folder / name.replace(".", "/"))])
