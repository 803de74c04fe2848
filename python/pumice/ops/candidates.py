"""Says which plans there are for a convolution, and which one runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from .._tensors import check_tensor
from . import modes
from .maps import Map


def candidates(
    features: Tensor,
    weight: Tensor,
    map: Map,
    direction: str = "forward",
    groups: int = 1,
    deterministic: bool | None = None,
    tf32: bool | None = None,
) -> list[tuple[_C.Plan, float]]:
    """The plans that come into question for a convolution or one of its gradients, the one that runs without a plan
    first, then those that are predicted to be faster first. All of them compute the same up to rounding. Nothing is
    computed: of the tensors only shapes, types and the device count.

    Args:
        features: [in rows, C_in]; under autocast they count as of the type that autocast says.
        weight: [offsets, C_in / groups, C_out].
        map: which rows meet.
        direction: "forward", "input_gradient" or "weight_gradient".
        groups: those of the convolution.
        deterministic: whether a GPU has to give the same bits every time; default: as PyTorch is set.
        tf32: whether a GPU multiplies float32 as TF32; default: as PyTorch is set.
    Returns:
        (plan, time) of each, the time in parts of that of the first plan, by prediction.
    Raises:
        UserError: shapes and types that do not fit, or another direction.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map = ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window)
        >>> weight = torch.ones(27, 4, 8)
        >>> plan, time = ops.candidates(x.features, weight, map)[0]
        >>> plan.name, time
        ('fetch_on_demand/64', 1.0)
        >>> ops.convolution(x.features, weight, map, plan=plan)[0, 0]
        tensor(8.)
    """
    return _C.candidates(*_problem(features, weight, map, direction, groups, deterministic, tf32))


def plan_of(
    features: Tensor,
    weight: Tensor,
    map: Map,
    direction: str = "forward",
    groups: int = 1,
    deterministic: bool | None = None,
    tf32: bool | None = None,
) -> _C.Plan:
    """The plan by which a convolution or one of its gradients runs where none is given. Nothing is computed.

    Args:
        features: [in rows, C_in]; under autocast they count as of the type that autocast says.
        weight: [offsets, C_in / groups, C_out].
        map: which rows meet.
        direction: "forward", "input_gradient" or "weight_gradient".
        groups: those of the convolution.
        deterministic: whether a GPU has to give the same bits every time; default: as PyTorch is set.
        tf32: whether a GPU multiplies float32 as TF32; default: as PyTorch is set.
    Returns:
        The plan, with its reason.
    Raises:
        UserError: shapes and types that do not fit, or another direction.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> map = ops.submanifold_map(x.coords, nn.SubMConv3d(4, 8, 3).window)
        >>> ops.plan_of(x.features, torch.ones(27, 4, 8), map, "weight_gradient")
        <Plan sum_over_pairs>
    """
    return _C.plan_of(*_problem(features, weight, map, direction, groups, deterministic, tf32))


def _problem(
    features: Tensor, weight: Tensor, map: Map, direction: str, groups: int,
    deterministic: bool | None, tf32: bool | None,
) -> tuple[Any, ...]:  # fmt: skip
    check_tensor("features", features)
    check_tensor("weight", weight)
    dtype = modes.autocast_dtype(features)
    if dtype is not None and features.dtype != dtype:
        features = torch.empty_like(features, dtype=dtype)
    switches = modes.of(features)
    given = (
        switches[0] if deterministic is None else deterministic,
        switches[1] if tf32 is None else tf32,
    )
    return features, weight, map, direction, groups, *given
