"""Defines the part of `SparseTensor` that works on the features: arithmetic on the same sites, other types,
other devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Union

import torch
from torch import Tensor

from . import _C
from ._checks import kind_of
from ._fields import Fields
from ._tensors import check_floating
from .coords import Coordinates
from .ops import prune, traced

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Self

    Factor = Union["Values", Tensor, float]


class Values(Fields):
    """The part of `SparseTensor` that works on features alone."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def indices(self) -> Tensor: ...

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Takes what torch.Tensor.to takes: the features change to another floating type, features and sites move."""
        features = self.features.to(*args, **kwargs)
        if features is self.features:
            return self
        check_floating(features)
        return self._of(self.coords.to(features.device), features)

    def cpu(self) -> Self:
        """Both on the host; waits for a GPU."""
        return self.to("cpu")

    def cuda(self, device: int | torch.device | None = None) -> Self:
        """Both on a GPU, the current one by default."""
        return self.to(torch.device("cuda") if device is None else torch.device("cuda", device)
                       if isinstance(device, int) else device)

    def detach(self) -> Self:
        """The same values, through which no gradient goes back."""
        return self._of(self.coords, self.features.detach())

    def half(self) -> Self:
        """Features in float16."""
        return self.to(torch.float16)

    def bfloat16(self) -> Self:
        """Features in bfloat16."""
        return self.to(torch.bfloat16)

    def float(self) -> Self:
        """Features in float32."""
        return self.to(torch.float32)

    def double(self) -> Self:
        """Features in float64."""
        return self.to(torch.float64)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Gradients of the features are wanted: those of x.features.grad. Returns itself."""
        self.features.requires_grad_(requires_grad)
        return self

    def numpy(self) -> tuple[np.ndarray, np.ndarray]:
        """(indices int32 [N, 1 + D], features [N, C]), detached and on the host; waits for a GPU. bfloat16
        becomes float32, since NumPy has no such type."""
        features = self.features.detach().cpu()
        if features.dtype == torch.bfloat16:
            features = features.to(torch.float32)
        return self.indices.cpu().numpy(), features.numpy()

    def __getitem__(self, mask: torch.Tensor) -> Self:
        """The rows where `mask`, bool [N], is true, on sites of their own; `ops.prune`."""
        if not (isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and mask.shape == (len(self),)):
            given = f"{mask.dtype} {list(mask.shape)}" if isinstance(mask, torch.Tensor) else repr(mask)
            raise _C.UserError(
                f"x[{given}]: a sparse tensor takes a mask, bool [{len(self)}]; rows by number are "
                "x.features[rows] and x.indices[rows]"
            )
        return prune(self, mask)

    def __add__(self, other: Self) -> Self:
        """The sum, on the same sites; `ops.union_add` is for different ones."""
        features = features_on(self.coords, other, "+")
        self._expect_channels_of(features, "+")
        return self._of(self.coords, self.features + features)

    def __sub__(self, other: Self) -> Self:
        """The difference, on the same sites; `ops.union_add(x, -y)` is for different ones."""
        features = features_on(self.coords, other, "-")
        self._expect_channels_of(features, "-")
        return self._of(self.coords, self.features - features)

    def __mul__(self, other: Factor) -> Self:
        """The product with a sparse tensor on the same sites, a number, or a tensor that broadcasts to [N, C]."""
        return self._scaled(self.features * self._factor(other, "*"))

    __rmul__ = __mul__

    def __truediv__(self, other: Factor) -> Self:
        """The quotient by a sparse tensor on the same sites, a number, or a tensor that broadcasts to [N, C]."""
        return self._scaled(self.features / self._factor(other, "/"))

    def __neg__(self) -> Self:
        """The features with the other sign, on the same sites."""
        return self._of(self.coords, -self.features)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _C.UserError("a SparseTensor is no array: x.numpy() gives two, its indices and its features")

    __array_ufunc__ = None  # so that NumPy leaves `number * x` to __rmul__

    def _expect_channels_of(self, features: Tensor, what: str) -> None:
        """Raises UserError, in the name of `what`, for other channels; one channel goes with any number."""
        if torch.compiler.is_compiling():
            return
        here, there = self.features.shape[1], features.shape[1]
        if here != there and 1 not in (here, there):
            raise _C.UserError(
                f"{what}: the tensors have {here} and {there} channels: give as many, as pumice.nn.Linear({there}, {here}) "
                "makes of the second"
            )

    def _factor(self, other: Factor, what: str) -> Any:
        if isinstance(other, Values):
            return features_on(self.coords, other, what)
        if not isinstance(other, torch.Tensor):
            return float(other)
        return other

    def _scaled(self, features: Tensor) -> Self:
        if features.shape != self.features.shape:
            raise _C.UserError(
                f"the product has shape {tuple(features.shape)} where the features have "
                f"{tuple(self.features.shape)}: give a number, [N, 1], [C] or [N, C]"
            )
        return self._of(self.coords, features)


def check_sparse(what: str, x: Any) -> None:
    """Raises UserError, in the name of `what`, unless `x` is a SparseTensor."""
    if not isinstance(x, Values):
        raise _C.UserError(
            f"{what} takes sparse tensors, and got {kind_of(x)}: "
            "x.replace(features=…) makes one of features on the sites of x"
        )


def features_on(coords: Coordinates, x: Any, what: str) -> torch.Tensor:
    """The features of `x`. Raises UserError, in the name of `what`, unless it is a SparseTensor on
    `coords`."""
    check_sparse(what, x)
    if x.coords is coords or x.coords.is_same(coords):
        return x.features
    if torch.compiler.is_compiling():  # the graph finds out when it runs
        return traced.on_sites(x.features, x.coords, coords, what)
    raise _C.UserError(
        f"{what}: the tensors have {len(coords)} and {len(x)} rows on different sites; "
        "use pumice.ops.union_add, or give one the Coordinates of the other"
    )
