"""Keeps the packed weights of frozen models from call to call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .. import _C
from .._checks import kind_of


class Kept:
    """The packed weights of one layer. They are kept from call to call only after `freeze` has promised that the
    weight stays as it is, and only in evaluation. A copy of the layer starts without them.
    """

    __slots__ = ("frozen", "packed")

    def __init__(self) -> None:
        self.frozen = False
        self.packed = _C.PackedWeights()

    def freeze(self) -> None:
        """Keeps what the next call packs."""
        self.frozen = True
        self.packed = _C.PackedWeights()

    def norm_trains(self) -> None:
        """Tells a layer that the norm behind it runs in training: kernels move its statistics, of which PyTorch counts
        no version, and all that is made of a frozen layer and its norm goes by what the layer has packed."""
        if self.frozen:
            self.packed = _C.PackedWeights()

    def of(self, training: bool) -> _C.PackedWeights | None:
        """The packed weights of a frozen layer in evaluation; None where they may change."""
        return None if training or not self.frozen else self.packed

    def _arguments(self) -> tuple[Any, ...]:
        """The arguments of the constructor, for a copy of the layer."""
        return ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return type(self)(*self._arguments())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments()


# By the class of a layer that does not hold its `Kept` itself, what finds it.
KEPT_OF: dict[type, Callable[[torch.nn.Module], Kept | None]] = {}


def kept_of(layer: torch.nn.Module) -> Kept | None:
    """What a layer keeps packed; None where it packs nothing."""
    kept = getattr(layer, "_kept", None)
    if isinstance(kept, Kept):
        return kept
    find = KEPT_OF.get(type(layer))
    return None if find is None else find(layer)


# Of those who record graphs. The extension holds this very list, and looks whether there are any.
readers: list[list[Any]] = []


def used(made: Any) -> None:
    """Tells who records a graph that its kernels read `made`: weights in the form of kernels, or norms as scales."""
    for read in readers:
        read.append(made)


@contextmanager
def frozen_for(model: torch.nn.Module, packed: dict[Kept, _C.PackedWeights], read: list[Any]) -> Iterator[None]:
    """In it the layers of `model` keep what they pack in `packed`, whether they are frozen or not, and everything made
    of weights that kernels read is added to `read`, which keeps it alive for a graph."""
    layers = [kept for layer in model.modules() if (kept := kept_of(layer)) is not None]
    before = [(kept, kept.frozen, kept.packed) for kept in layers]
    for kept in layers:
        kept.frozen = True
        kept.packed = packed.setdefault(kept, _C.PackedWeights())
    readers.append(read)
    try:
        yield
    finally:
        del readers[next(at for at, one in enumerate(readers) if one is read)]
        for kept, frozen, own in before:
            packed[kept] = kept.packed
            kept.frozen, kept.packed = frozen, own


def freeze(model: torch.nn.Module) -> torch.nn.Module:
    """Promises that weights of `model` do not change from here on, so that its convolutions on a
    GPU pack theirs once, not at each call; for evaluation without gradients. Call it again after
    changing weights.

    Without the promise weights are packed at each call, since PyTorch does not count writes into `weight.data`.

    Args:
        model: with convolutions of `pumice.nn` or `pumice.compat` at any depth.
    Returns:
        `model` itself.
    Raises:
        UserError: for what is no module.
    Waits:
        Never.
    Example:
        >>> net = nn.freeze(nn.Sequential(nn.SubMConv3d(4, 8, 3)).eval())
    """
    if not isinstance(model, torch.nn.Module):
        raise _C.UserError(f"model is {kind_of(model)}: give a module")
    for layer in model.modules():
        kept = kept_of(layer)
        if kept is not None:  # layers of `pumice.compat` keep theirs alike
            kept.freeze()
    return model
