"""Defines the blocks that networks are built from. Modules have the names that the C++ networks give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .. import nn
from ..nn.composition import COMPOSITIONS, Composition
from ..nn.convolution import Convolution
from ..profiling import Explanation, explain
from ..tensor import SparseTensor


class Norms:
    """Makes the norms of a network."""

    def __init__(self, eps: float = 1e-5, momentum: float = 0.1) -> None:
        """The arguments are those of the class."""
        self.eps = eps
        self.momentum = momentum

    def __call__(self, channels: int) -> torch.nn.Module:
        return nn.BatchNorm(channels, eps=self.eps, momentum=self.momentum)


PYTORCH_NORMS = Norms()
# OpenPCDet and CenterPoint train with these, so their checkpoints mean this epsilon.
DETECTOR_NORMS = Norms(eps=1e-3, momentum=0.01)


def submanifold(in_channels: int, out_channels: int, kernel_size: int = 3) -> Convolution:
    return nn.SubMConv3d(in_channels, out_channels, kernel_size, bias=False)


def convolution_block(convolution: Convolution, norms: Norms = PYTORCH_NORMS) -> nn.Sequential:
    """A convolution, its norm and a ReLU, which run as one.

    Args:
        convolution: a convolution layer, best without bias.
        norms: how the norm is made; default: as PyTorch's.
    Returns:
        A `nn.Sequential` of the three.
    Raises:
        Nothing.
    Waits:
        Never.
    Example:
        >>> len(models.convolution_block(nn.SubMConv3d(4, 8, 3, bias=False)))
        3
    """
    return nn.Sequential(convolution, norms(convolution.out_channels), nn.ReLU(inplace=True))


class Network(torch.nn.Module):
    """The base of all networks here."""

    def explain(self, x: SparseTensor) -> Explanation:
        """Rows, pairs, plan and milliseconds of every layer: `pumice.explain`."""
        return explain(self, x)

    def card(self) -> dict[str, str]:
        """The metadata that `pumice.save_weights` writes with the weights: which network they are of, and its
        widths."""
        raise NotImplementedError

    def made_with(self, in_channels: int | None = None, outputs: int | None = None) -> str:
        """The call that makes such a network of other ends, for errors."""
        raise NotImplementedError


class NamedBlock(torch.nn.Module):
    """A block inside a module of its own, so that its path has the "net" of published weights."""

    def __init__(self, convolution: Convolution) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.net = convolution_block(convolution)

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor, like: SparseTensor | None = None) -> SparseTensor: ...

    def forward(self, x: SparseTensor, like: SparseTensor | None = None) -> SparseTensor:
        """What `net` makes."""
        return self.net(x, like)


class ResidualBlock(torch.nn.Module):
    """relu(net(x) + shortcut(x)): net is conv-norm-relu-conv-norm of 3³ submanifold convolutions; the shortcut is x,
    or a 1³ conv-norm named `downsample` where the widths differ.

    Args:
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        norms: how norms are made; default: as PyTorch's.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [N, out_channels] on the same sites.
    Raises:
        UserError: other channels or axes, with the layer's path in the network.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> models.ResidualBlock(4, 8)(x).shape
        torch.Size([2, 8])
    """

    def __init__(
        self, in_channels: int, out_channels: int, norms: Norms = PYTORCH_NORMS
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        self.net = nn.Sequential(
            submanifold(in_channels, out_channels),
            norms(out_channels),
            nn.ReLU(inplace=True),
            submanifold(out_channels, out_channels),
            norms(out_channels),
        )
        self.downsample = (
            None
            if in_channels == out_channels
            else nn.Sequential(submanifold(in_channels, out_channels, 1), norms(out_channels))
        )

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, in_channels] to [N, out_channels] on the same sites."""
        shortcut = x if self.downsample is None else self.downsample(x)
        return nn.residual(self.net, x, shortcut)


COMPOSITIONS[NamedBlock] = lambda block: Composition([block.net])
COMPOSITIONS[ResidualBlock] = lambda block: Composition([block.net], True, block.downsample)
