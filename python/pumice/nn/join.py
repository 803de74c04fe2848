"""Defines modules that join branches: `Cat` and `Add`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .._checks import at_least_one
from ..joining import cat
from ..tensor import SparseTensor, check_sparse
from .described import described


@described
class Cat(torch.nn.Module):
    """Channels side by side, on the same sites: [N, C1], [N, C2], … to [N, C1 + C2 + …].

    Returns:
        Of a call with sparse tensors, one on the sites of the first.
    Raises:
        UserError: for no tensor, and for tensors on different sites.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.Cat()(x, x).shape
        torch.Size([2, 8])
    """

    if TYPE_CHECKING:

        def __call__(self, *tensors: SparseTensor) -> SparseTensor: ...

    def forward(self, *tensors: SparseTensor) -> SparseTensor:
        """`pumice.cat` of all."""
        return cat(tensors)


@described
class Add(torch.nn.Module):
    """The sum, on the same sites, of tensors [N, C].

    Returns:
        Of a call with sparse tensors, one on the sites of the first.
    Raises:
        UserError: for no tensor, and for tensors on different sites.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.Add()(x, x).features[0]
        tensor([2., 2., 2., 2.])
    """

    if TYPE_CHECKING:

        def __call__(self, *tensors: SparseTensor) -> SparseTensor: ...

    def forward(self, *tensors: SparseTensor) -> SparseTensor:
        """The sum of all."""
        at_least_one("Add: tensors", tensors, "SparseTensor")
        check_sparse("Add", tensors[0])
        total = tensors[0]
        for other in tensors[1:]:
            total = total + other
        return total
