"""Every public name says what it is."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import pumice
import pumice.compat
import pumice.convert

PUBLIC = [
    "pumice",
    "pumice.compat",
    "pumice.convert",
    "pumice.data",
    "pumice.losses",
    "pumice.metrics",
    "pumice.models",
    "pumice.nn",
    "pumice.ops",
]
# What `pumice.compat` adds of its own. Names that another library gave, in the other modules there,
# are explained by that library.
OWN = [
    "pumice.compat.foreign",
    "pumice.compat.minkowski.kernels",
    "pumice.compat.spconv.pytorch.activate",
    "pumice.compat.spconv.pytorch.checks",
    "pumice.compat.spconv.pytorch.find",
    "pumice.compat.spconv.pytorch.indice_data",
    "pumice.compat.spconv.pytorch.layouts",
    "pumice.compat.spconv.voxels",
    "pumice.compat.torchsparse.conventions",
    "pumice.compat.torchsparse.nn.functional.conv.maps",
]
INSTALL = ["pumice.compat.minkowski", "pumice.compat.spconv", "pumice.compat.torchsparse"]


def public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is not None and module.__name__ not in OWN:
        return list(names)
    here = [name for name, value in vars(module).items() if _made_in(value, module.__name__)]
    return [name for name in here if not name.startswith("_")]


def _made_in(value: Any, module: str) -> bool:
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return (getattr(value, "__module__", None) or "").startswith(module)


def says_something(what: Any) -> bool:
    return bool((getattr(what, "__doc__", None) or "").strip())


def describes_itself(kind: type) -> bool:
    """A text of its own: not that of a base, nor the list of fields that dataclasses write."""
    text = vars(kind).get("__doc__") or ""
    return bool(text.strip()) and not (dataclasses.is_dataclass(kind) and text.startswith(f"{kind.__name__}("))


def silent_members(kind: type) -> Iterator[str]:
    """A method may leave it to the base whose promise it keeps."""
    for name in dir(kind):
        found = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
        member = inspect.isroutine(found[0]) or isinstance(found[0], property)
        if name.startswith("_") or not member or not _made_in(found[0], "pumice"):
            continue
        if not any(says_something(one) for one in found):
            yield name


def silent(module: ModuleType) -> Iterator[str]:
    for name in public_names(module):
        value = getattr(module, name)
        if inspect.isclass(value):
            if not describes_itself(value):
                yield name
            yield from (f"{name}.{member}" for member in silent_members(value))
        elif inspect.isroutine(value) and not says_something(value):
            yield name


@pytest.mark.parametrize("name", PUBLIC + OWN)
def test_public_names(name: str) -> None:
    assert list(silent(importlib.import_module(name))) == []


@pytest.mark.parametrize("name", INSTALL)
def test_install_of_every_interface(name: str) -> None:
    assert says_something(importlib.import_module(name).install)


# Modules that say, when they are imported, why they are not there; spconv_api_test.py imports them.
REFUSED = [
    f"pumice.compat.spconv.{name}"
    for name in ("algo", "benchmark", "core_cc", "pytorch.interpreter", "pytorch.quantization")
]


def test_modules() -> None:
    found = [info.name for info in pkgutil.walk_packages(pumice.__path__, "pumice.")]
    assert len(found) > 80, "the modules were not found"
    python = [name for name in found if name not in ("pumice.__main__", "pumice._C", *REFUSED)]
    assert [name for name in python if not says_something(importlib.import_module(name))] == []


def test_the_check_sees_what_is_silent() -> None:
    module = ModuleType("pumice.made_up")
    source = """
import dataclasses

class Loud:
    'Says something.'
    def method(self): 'Says something.'

class Quiet(Loud):
    def method(self): ...  # keeps the promise of the base
    def other(self): ...
    @property
    def value(self): ...
    @classmethod
    def make(cls): ...

@dataclasses.dataclass
class Fields:
    x: int

def function(): ...
def _own(): ...
"""
    sys.modules[module.__name__] = module  # where dataclasses look for it
    try:
        exec(source, module.__dict__)
    finally:
        del sys.modules[module.__name__]
    expected = ["Fields", "Quiet", "Quiet.make", "Quiet.other", "Quiet.value", "function"]
    assert sorted(silent(module)) == expected
