"""Checks arguments that are objects of Pumice: sites, windows and sparse tensors. _checks.py checks numbers and arrays,
_tensors.py tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from . import _C
from ._checks import kind_of, sparse_from
from ._fields import Fields
from .coords import Coordinates
from .window import Window


def check_sparse(what: str, x: Any) -> None:
    """Raises UserError, in the name of `what`, unless `x` is a SparseTensor."""
    if not isinstance(x, Fields):
        raise _C.UserError(
            f"{what} takes sparse tensors, and got {kind_of(x)}: "
            + sparse_from(x, "x.replace(features=…) makes one of features on the sites of x")
        )


def check_sites(name: str, coords: Any) -> None:
    """Raises UserError, naming the argument, unless `coords` are Coordinates."""
    if isinstance(coords, Coordinates):
        return
    remedy = "give Coordinates, as x.coords of a sparse tensor x"
    if isinstance(coords, Fields):
        remedy = "give x.coords"
    elif isinstance(coords, torch.Tensor):
        remedy += ", or pumice.Coordinates(indices)"
    raise _C.UserError(f"{name} is {kind_of(coords)}: {remedy}")


def check_window(name: str, window: Any) -> None:
    """Raises UserError, naming the argument, unless `window` is one."""
    if not isinstance(window, Window):
        raise _C.UserError(f"{name} is {kind_of(window)}: give the window of a layer, as layer.window")
