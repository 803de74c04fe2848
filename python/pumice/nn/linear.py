"""Defines `Linear`, a dense layer over the channels of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .. import _C
from .._where import explained, not_sparse
from ..ops import modes
from ..ops.counted import linear
from ..tensor import SparseTensor
from .described import described


@described
class Linear(torch.nn.Linear):
    """torch.nn.Linear of the features.

    Args:
        in_features: channels of the features that go in.
        out_features: channels of those that come out.
        bias: whether a number is added to each channel.
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, in_features], one [N, out_features] on the same sites.
    Raises:
        UserError: numbers of channels below 1; other channels, with the layer's path in the network.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.Linear(4, 2)(x).shape
        torch.Size([2, 2])
    """

    _channels = ("in_features", "out_features")

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, in_features] to [N, out_features], on the same sites."""
        try:
            features, weight = x.features, self.weight
            if features.dtype != weight.dtype and modes.autocast_dtype(features) is None:
                raise _C.UserError(
                    f"weight is {_short(weight.dtype)} but the features are {_short(features.dtype)}: convert one of them"
                )
            return SparseTensor._of(x.coords, linear(features, weight, self.bias, x.coords))
        except (AttributeError, ValueError, RuntimeError) as error:
            if not isinstance(x, SparseTensor):
                raise not_sparse(self, x) from None
            better = explained(error)
            if better is error:
                raise
            raise better from None


def _short(dtype: torch.dtype) -> str:
    """"f16", as errors of convolutions name types."""
    return _SHORT.get(dtype, str(dtype))


_SHORT = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}
