"""What help() says of every public class and function: parameters, results, errors, whether it waits, and an
example, which is run."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pathlib
import pydoc
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import pumice
import pumice.compat
import pumice.convert
from pumice import convert, data, losses, metrics, models, nn, ops

MODULES = [
    "pumice",
    "pumice.compat",
    "pumice.convert",
    "pumice.data",
    "pumice.formats",
    "pumice.losses",
    "pumice.metrics",
    "pumice.models",
    "pumice.nn",
    "pumice.nn.graph",
    "pumice.nn.init",
    "pumice.ops",
    "pumice.view",
]
NAMES = {
    "torch": torch, "np": np, "pumice": pumice, "nn": nn, "ops": ops, "models": models, "data": data,
    "losses": losses, "metrics": metrics, "convert": convert,
}  # fmt: skip
# Of modules without a list.
IN_MODULES = {"pumice.view": ["log_rerun"], "pumice.losses": ["cross_entropy", "lovasz_softmax"], "pumice.metrics": ["Confusion"]}
# Errors have no arguments to explain.
ERRORS = ("Error", "InternalError", "UserError")


def public() -> Iterator[tuple[str, Any]]:
    for name in MODULES:
        module = importlib.import_module(name)
        for inside in getattr(module, "__all__", IN_MODULES.get(name, ())):
            value = getattr(module, inside)
            if (inspect.isclass(value) or inspect.isroutine(value)) and inside not in ERRORS:
                yield f"{name}.{inside}", value


PUBLIC = dict(public())


def parameters(value: Any) -> list[str]:
    found = inspect.signature(value).parameters.values()
    return [p.name for p in found if p.name not in ("self", "args", "kwargs") and not p.name.startswith("_")]


def sections(value: Any) -> set[str]:
    wanted = {"Example"}
    if isinstance(value, type) and getattr(value, "_is_protocol", False):
        return wanted
    if dataclasses.is_dataclass(value) or value is ops.InterpolationMap:  # no more than what it holds
        return wanted
    # Datasets and augmentations are of NumPy, which waits for nothing.
    wanted |= {"Raises"} if value.__module__.startswith("pumice.data") else {"Raises", "Waits"}
    if not inspect.isclass(value) or issubclass(value, torch.nn.Module):
        wanted |= {"Returns"}
    return wanted


def missing(value: Any) -> list[str]:
    text = inspect.getdoc(value) or ""
    there = set(re.findall(r"^(\w+):$", text, re.MULTILINE))
    named = set(re.findall(r"^ +(\w+): ", text, re.MULTILINE))
    return [*sorted(sections(value) - there), *(name for name in parameters(value) if name not in named)]


def test_there_is_something_to_look_at() -> None:
    assert len(PUBLIC) > 90 and "pumice.nn.SubMConv3d" in PUBLIC and "pumice.voxelize" in PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_sections_and_parameters(name: str) -> None:
    assert missing(PUBLIC[name]) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    said: list[str] = []
    text = inspect.getdoc(PUBLIC[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, dict(NAMES), name, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner.run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", [n for n, v in PUBLIC.items() if inspect.isclass(v)])
def test_help_is_that_of_the_class(name: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(PUBLIC[name]))
    assert "Initialize internal Module state" not in shown
    options = [p for p in inspect.signature(PUBLIC[name]).parameters.values() if p.kind is p.VAR_KEYWORD]
    assert not options, "arguments that help() does not name"


def test_the_check_sees_what_is_missing() -> None:
    def some(rows: int, other: int) -> int:
        """Says little.

        Args:
            rows: how many.
        Example:
            >>> 1
            1
        """
        return rows

    assert missing(some) == ["Raises", "Returns", "Waits", "other"]
