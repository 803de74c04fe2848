"""Describes what takes results without changing them: joins of two, and products with the weight of a linear layer.

A join of channels waits as two inputs of the convolution behind it, which kernels read where they lie; for the gradients of
weights they are brought together once for all convolutions of a chain. A linear layer without a bias is a convolution of one
offset, and with the norm behind it a link, as a shortcut is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch
from torch import Tensor

from ... import _C
from ...ops import modes
from ...window import Window
from .layers import can_wait, source_of, wait
from .links import JOINED, Link
from .matrices import Matrix, matrix_of
from .operations import JOINS, PRODUCTS
from .tensors import ASKS, RESULTS, Deferred, Observed, plain
from .uses import JOIN, NORM, OTHER, PRODUCT, TAKE, UNSEEN, Use

_learns_now = torch.is_grad_enabled
_KINDS = (Tensor, Deferred, Observed)


def join(left: Any, right: Any, use: Use) -> Tensor | None:
    """Channels of two results side by side, one of which waits; None where they have to be brought together now."""
    parts = [_part(tensor) for tensor in (left, right)]
    if not any(isinstance(part, Link) for part in parts):
        return None
    if not all(_C.is_as_called(part) for part in parts if isinstance(part, Link)):
        return None
    return _C.joined(*parts, use)


def joined(held: Sequence[Any]) -> Tensor | None:
    """Channels side by side of what two sparse tensors on the same sites hold, where no user sees them before they are
    computed; None where they have to be brought together now."""
    waits = [tensor for tensor in held if type(tensor) is Deferred]
    if not waits or not can_join(held) or not can_wait(waits[0]):
        return None
    return join(*held, UNSEEN)


def can_join(tensors: Sequence[Any]) -> bool:
    """Whether these are two of one type, rows of which belong to each other."""
    if len(tensors) != 2:
        return False
    left, right = tensors
    return (
        type(left) in _KINDS
        and type(right) in _KINDS
        and left.dim() == right.dim() == 2
        and left.shape[0] == right.shape[0]
        and left.dtype is right.dtype
        and left.device == right.device
    )


def _part(tensor: Any) -> Union[Link, Tensor]:
    part = source_of(tensor)
    if isinstance(part, Link) and part.stage == JOINED:  # kernels read no more than two
        return plain(tensor)
    return part


def _concatenated(tensors: Any = (), dim: Any = 0, *, axis: Any = None, out: Any = None) -> list[Any] | None:
    """The two tensors that torch.cat was asked to join; None where it was asked for anything else."""
    dim = dim if axis is None else axis
    if type(tensors) not in (list, tuple) or type(dim) is not int or dim not in (1, -1) or out is not None:
        return None
    return list(tensors) if can_join(tensors) else None


def _use_of_join(args: Any, kwargs: Any) -> Use | None:
    """What records what is done to a join: one for both parts, so that either of them knows it."""
    tensors = _concatenated(*args, **kwargs)
    if tensors is None:
        return None
    uses = [tensor.use for tensor in tensors if type(tensor) is not Tensor]
    known = [use.joined for use in uses if use.joined is not None]
    shared = known[0] if known else Use(JOIN)
    for use in uses:
        if use.joined is None:
            use.joined = shared
    return _unless_read(shared)


def _unless_read(use: Use) -> Use | None:
    """None for what has to be computed at once, as its result is read: then its parts are read as well."""
    return None if use.known is OTHER else use


def _cat(*args: Any, **kwargs: Any) -> Tensor | None:
    tensors = _concatenated(*args, **kwargs)
    if tensors is None:
        return None
    use = None
    for tensor in tensors:
        if type(tensor) is Deferred:
            if tensor.use.known is not TAKE or not can_wait(tensor):
                return None
            use = use or tensor.use.joined
    if use is None or use.known is None or use.known is OTHER:
        return None
    return join(*tensors, use)


def _matrix(input: Any, weight: Any, bias: Any = None) -> Matrix | None:
    """What is known of the weight of a product that can be a link; None of others."""
    if bias is not None or type(weight) is not torch.nn.Parameter or weight.dim() != 2 or input.dim() != 2:
        return None
    if weight.shape[1] != input.shape[1] or weight.device != input.device:
        return None
    return matrix_of(weight) if weight.dtype is input.dtype or modes.autocast_dtype(input) is not None else None


def _use_of_product(args: Any, kwargs: Any) -> Use | None:
    matrix = _matrix(*args, **kwargs)
    return None if matrix is None else _unless_read(matrix.habit.of(False, _learns_now()))


def _product(input: Any, weight: Any, bias: Any = None) -> Tensor | None:
    if type(input) is not Deferred or input.use.known is not TAKE:
        return None
    matrix = _matrix(input, weight, bias)
    if matrix is None:
        return None
    use = matrix.habit.of(False, _learns_now())
    if use.known is not NORM or not can_wait(input):
        return None
    source = source_of(input)
    if not isinstance(source, Link) or not _C.is_as_called(source):
        return None
    return wait(source, weight, matrix, False, weight.shape[0], _rows_themselves(source), use)


def _rows_themselves(link: Link) -> _C.Map:
    """The map of each row of a result to itself."""
    of = link
    if link.stage == JOINED:
        of = link.source if isinstance(link.source, Link) else link.second
    sites = of.map.out_sites
    one = (1,) * len(sites.stride)
    window = _windows.get(len(one))
    if window is None:
        window = _windows[len(one)] = Window.centred(one, one)
    return _C.submanifold_map(sites, window.c)


_windows: dict[int, Window] = {}

ASKS.update(dict.fromkeys(JOINS, _cat))
ASKS.update(dict.fromkeys(PRODUCTS, _product))
RESULTS.update({JOIN: _use_of_join, PRODUCT: _use_of_product})
