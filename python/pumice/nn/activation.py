"""Defines activations and dropout, which work on the features alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .._where import not_sparse
from ..tensor import SparseTensor
from .described import described

_TEXT = """torch.nn.{name} of the features of a sparse tensor.

{arguments}    Returns:
        Of a call with a sparse tensor [N, C], one [N, C] on the same sites.
    Raises:
        UserError: where it is given something else than a sparse tensor.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3]]), torch.tensor([[-1.0, 2.0]]))
        >>> nn.{name}()(x).shape
        torch.Size([1, 2])
    """


def _on_features(base: type[torch.nn.Module], arguments: str) -> type[torch.nn.Module]:
    def forward(self: torch.nn.Module, x: SparseTensor) -> SparseTensor:
        """[N, C] to [N, C], on the same sites."""
        try:
            coords = x.coords
        except AttributeError:
            raise not_sparse(self, x) from None
        return SparseTensor._of(coords, base.forward(self, x.features))

    made = type(
        base.__name__,
        (base,),
        {
            "forward": forward,
            "__module__": __name__,
            "__qualname__": base.__name__,
            "__doc__": _TEXT.format(name=base.__name__, arguments=f"    Args:\n        {arguments}\n" if arguments else ""),
        },
    )
    return described(made)


if TYPE_CHECKING:

    class _Rows:
        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    class ReLU(_Rows, torch.nn.ReLU): ...

    class ReLU6(_Rows, torch.nn.ReLU6): ...

    class LeakyReLU(_Rows, torch.nn.LeakyReLU): ...

    class PReLU(_Rows, torch.nn.PReLU): ...

    class ELU(_Rows, torch.nn.ELU): ...

    class GELU(_Rows, torch.nn.GELU): ...

    class SiLU(_Rows, torch.nn.SiLU): ...

    class Sigmoid(_Rows, torch.nn.Sigmoid): ...

    class Tanh(_Rows, torch.nn.Tanh): ...

    class Dropout(_Rows, torch.nn.Dropout): ...

else:
    _INPLACE = "inplace: whether the features themselves are overwritten."
    ReLU = _on_features(torch.nn.ReLU, _INPLACE)
    ReLU6 = _on_features(torch.nn.ReLU6, _INPLACE)
    LeakyReLU = _on_features(
        torch.nn.LeakyReLU, f"negative_slope: the factor below 0.\n        {_INPLACE}"
    )
    PReLU = _on_features(
        torch.nn.PReLU,
        "num_parameters: 1, or one factor below 0 for each channel.\n        init: what they begin with."
        "\n        device: where they are made.\n        dtype: their type.",
    )
    ELU = _on_features(torch.nn.ELU, f"alpha: the limit below 0.\n        {_INPLACE}")
    GELU = _on_features(torch.nn.GELU, 'approximate: "none" or "tanh".')
    SiLU = _on_features(torch.nn.SiLU, _INPLACE)
    Sigmoid = _on_features(torch.nn.Sigmoid, "")
    Tanh = _on_features(torch.nn.Tanh, "")
    Dropout = _on_features(
        torch.nn.Dropout, f"p: the share of numbers that become 0 in training.\n        {_INPLACE}"
    )
