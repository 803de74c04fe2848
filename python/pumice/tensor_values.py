"""Defines the part of `SparseTensor` that works on the features: arithmetic on the same sites, other types,
other devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Union

import torch
from torch import Tensor

from . import _C
from ._checks import kind_of, true_or_false
from ._fields import Fields
from ._objects import check_sparse
from ._tensors import as_device, check_floating
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
        try:
            features = self.features.to(*args, **kwargs)
        except (TypeError, RuntimeError) as error:
            _refuse_target(error, args, kwargs)
            raise
        if features is self.features:
            return self
        check_floating(features)
        return self._of(self.coords.to(features.device), features)

    def cpu(self) -> Self:
        """Both on the host; waits for a GPU."""
        return self.to("cpu")

    def cuda(self, device: int | torch.device | None = None) -> Self:
        """Both on a GPU, the current one by default."""
        return self.to(as_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device))

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
        true_or_false("requires_grad", requires_grad)
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
        return self._of(self.coords, self.features * self._factor(other, "*"))

    __rmul__ = __mul__

    def __truediv__(self, other: Factor) -> Self:
        """The quotient by a sparse tensor on the same sites, a number, or a tensor that broadcasts to [N, C]."""
        return self._of(self.coords, self.features / self._factor(other, "/"))

    def __neg__(self) -> Self:
        """The features with the other sign, on the same sites."""
        return self._of(self.coords, -self.features)

    def __abs__(self) -> Self:
        """The features without their sign, on the same sites."""
        return self._of(self.coords, self.features.abs())

    def __pow__(self, exponent: float) -> Self:
        """The features to the power of a number, on the same sites."""
        return self._of(self.coords, self.features ** _number(exponent, "**"))

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
            other = features_on(self.coords, other, what)
        if not isinstance(other, torch.Tensor):
            return _number(other, what)
        shape, whole = other.shape, self.features.shape
        if not torch.compiler.is_compiling() and not (
            len(shape) <= len(whole) and all(n in (1, m) for n, m in zip(shape[::-1], whole[::-1]))
        ):
            raise _C.UserError(
                f"{what}: a tensor of shape {tuple(shape)} for features of {tuple(whole)}: give a number, [N, 1], [C] or [N, C]"
            )
        return other


def _refuse_target(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises UserError in place of an error of torch.Tensor.to, where the arguments are to blame."""
    given = ", ".join([*map(str, args), *(f"{name}={value}" for name, value in kwargs.items())])
    if isinstance(error, TypeError) or "device string" in str(error):
        raise _C.UserError(
            f"to({given[:80]}): give a device, a type or both, as 'cuda:0' or torch.float16, or a tensor that has them"
        ) from None


def _number(value: Any, what: str) -> float:
    """`value`. Raises UserError, in the name of the operator, for what is no number."""
    if isinstance(value, (int, float)):
        return value
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise _C.UserError(f"{what} takes a number, and got {kind_of(value)}")


_REMEDIES = {
    "+": "give a sparse tensor on the same sites, or x.replace(features=x.features + …)",
    "-": "x.replace(features=… - x.features) is on the same sites",
    "/": "x.replace(features=… / x.features) is on the same sites",
}


def _refusing(sign: str, reflected: bool) -> Any:
    """An operator that Python looks for on a sparse tensor, and that it lacks."""
    remedy = _REMEDIES.get(sign, "give it x.features, and x.replace(features=…) its result")
    if sign in ("<", "<=", ">", ">="):
        remedy = f"compare its features, as x[x.features[:, 0] {sign} 0] does, which keeps rows"

    def operator(x: Values, *others: Any) -> NoReturn:
        other = "".join(type(other).__name__ for other in others)
        given = f"{other} {sign} x" if reflected else f"x {sign} {other}" if others else f"{sign}x"
        raise _C.UserError(f"{given}: x is a SparseTensor, which has no such operator: {remedy}")

    return operator


# Not in the class, so that type checkers refuse them.
for _sign, _names in {
    "+": "radd", "-": "rsub", "/": "rtruediv", "**": "rpow", "//": "floordiv rfloordiv", "%": "mod rmod",
    "@": "matmul rmatmul", "&": "and rand", "|": "or ror", "^": "xor rxor", "~": "invert", "<": "lt", "<=": "le", ">": "gt",
    ">=": "ge",
}.items():  # fmt: skip
    for _name in _names.split():
        setattr(Values, f"__{_name}__", _refusing(_sign, _name.startswith("r")))


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
