"""Provides initialisers of convolution weights that know the meaning of the axes.

A weight of `pumice.nn` is [K, in / groups, out], offsets first. For any tensor of these axes the functions compute
what torch.nn.init computes for the weight of the equal torch.nn.ConvNd. torch.nn.init itself does so for parameters
of layers of `pumice.nn` only (fan_in.py).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of
from .fan_in import fans_of_layout

__all__ = ["fans", "kaiming_normal_", "kaiming_uniform_", "xavier_normal_", "xavier_uniform_"]


def fans(weight: Tensor) -> tuple[int, int]:
    """How many products each output sums (fan-in), and in how many each input is (fan-out).

    Args:
        weight: [K, in / groups, out], or the [out, in] of a linear layer.
    Returns:
        (fan-in, fan-out): (K · in / groups, K · out), or (in, out).
    Raises:
        UserError: for a tensor of other axes.
    Waits:
        Never.
    Example:
        >>> nn.init.fans(nn.SubMConv3d(4, 8, 3).weight)
        (108, 216)
    """
    if not isinstance(weight, Tensor):
        raise _C.UserError(f"weight is {kind_of(weight)}: give a tensor, as layer.weight")
    if weight.dim() == 2:
        return weight.shape[1], weight.shape[0]
    if weight.dim() != 3:
        raise _C.UserError(
            f"weight has shape {tuple(weight.shape)}: give that of a convolution of pumice.nn, [K, in, out], or of "
            "a linear layer, [out, in]; torch.nn.init is for others"
        )
    return fans_of_layout(weight)


def kaiming_uniform_(
    weight: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Uniform, with the variance gain² / fan: torch.nn.init.kaiming_uniform_ for weights of pumice.nn.

    Args:
        weight: [K, in / groups, out], written in place.
        a: negative slope, of "leaky_relu".
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
        nonlinearity: what follows, as torch.nn.init.calculate_gain names it.
        generator: of the random numbers; default: PyTorch's.
    Returns:
        The weight itself.
    Raises:
        UserError: for a tensor of other axes, and for another mode.
    Waits:
        Never.
    Example:
        >>> layer = nn.SubMConv3d(4, 8, 3)
        >>> _ = nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
        >>> bool(layer.weight.abs().max() <= (6 / 108) ** 0.5)
        True
    """
    return _uniform(weight, _kaiming(weight, a, mode, nonlinearity), generator)


def kaiming_normal_(
    weight: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Normal, with the variance gain² / fan: torch.nn.init.kaiming_normal_ for weights of pumice.nn.

    Args:
        weight: [K, in / groups, out], written in place.
        a: negative slope, of "leaky_relu".
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
        nonlinearity: what follows, as torch.nn.init.calculate_gain names it.
        generator: of the random numbers; default: PyTorch's.
    Returns:
        The weight itself.
    Raises:
        UserError: for a tensor of other axes, and for another mode.
    Waits:
        Never.
    Example:
        >>> layer = nn.SubMConv3d(4, 8, 3)
        >>> nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu") is layer.weight
        True
    """
    return _normal(weight, _kaiming(weight, a, mode, nonlinearity), generator)


def xavier_uniform_(
    weight: Tensor, gain: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Uniform, with the variance 2 gain² / (fan-in + fan-out): torch.nn.init.xavier_uniform_ for weights of
    pumice.nn.

    Args:
        weight: [K, in / groups, out], written in place.
        gain: a factor.
        generator: of the random numbers; default: PyTorch's.
    Returns:
        The weight itself.
    Raises:
        UserError: for a tensor of other axes.
    Waits:
        Never.
    Example:
        >>> layer = nn.Conv3d(4, 8, 2, stride=2)
        >>> nn.init.xavier_uniform_(layer.weight) is layer.weight
        True
    """
    return _uniform(weight, gain * math.sqrt(2 / sum(fans(weight))), generator)


def xavier_normal_(
    weight: Tensor, gain: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Normal, with the variance 2 gain² / (fan-in + fan-out): torch.nn.init.xavier_normal_ for weights of
    pumice.nn.

    Args:
        weight: [K, in / groups, out], written in place.
        gain: a factor.
        generator: of the random numbers; default: PyTorch's.
    Returns:
        The weight itself.
    Raises:
        UserError: for a tensor of other axes.
    Waits:
        Never.
    Example:
        >>> layer = nn.Conv3d(4, 8, 2, stride=2)
        >>> nn.init.xavier_normal_(layer.weight) is layer.weight
        True
    """
    return _normal(weight, gain * math.sqrt(2 / sum(fans(weight))), generator)


def _kaiming(weight: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """The deviation."""
    if mode not in ("fan_in", "fan_out"):
        raise _C.UserError(f"mode = {mode!r}: there are 'fan_in' and 'fan_out'")
    fan = fans(weight)[mode == "fan_out"]
    gain: float = torch.nn.init.calculate_gain(nonlinearity, a)  # type: ignore[arg-type]
    return gain / math.sqrt(max(fan, 1))


def _uniform(weight: Tensor, deviation: float, generator: torch.Generator | None) -> Tensor:
    bound = math.sqrt(3) * deviation
    with torch.no_grad():
        return weight.uniform_(-bound, bound, generator=generator)


def _normal(weight: Tensor, deviation: float, generator: torch.Generator | None) -> Tensor:
    with torch.no_grad():
        return weight.normal_(0, deviation, generator=generator)
