"""Defines `SparseTensor`: features on sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from . import _C, _torch_functions, ops
from ._checks import kind_of, warn_once
from ._fields import Fields
from ._objects import check_sparse as check_sparse  # theirs to import here
from ._tensors import check_floating, no_tensor, ordinary
from .coords import Coordinates
from .tensor_values import Values
from .tensor_values import features_on as features_on

if TYPE_CHECKING:
    from typing_extensions import Self

_set = object.__setattr__
_compiling = torch.compiler.is_dynamo_compiling  # whether Dynamo traces this code; eagerly one cheap call


class SparseTensor(Values):
    """Features of distinct sites: row i of `features` belongs to row i of `indices`.

    `+`, `-`, `*` and `/` of tensors on the same sites, `*` and `/` by a number or by a tensor that
    broadcasts to [N, C]; `x[mask]` keeps the rows where a bool [N] is true. Functions of torch that look at
    each number alone, as torch.relu, give a sparse tensor; others take `x.features`.

    Args:
        coords: int32 or int64 [N, 1 + D], batch index first, or the `Coordinates` of another tensor,
            whose kernel maps it then shares.
        features: floating [N, C], on the same device.
        spatial_shape: cells an axis, D numbers; default: the grid has no bounds.
        batch_size: number of batch items; default: the largest batch index and one.
        stride: length of a cell in cells of the finest level, D numbers; default: 1.
    Raises:
        UserError: rows of both that differ, other devices or types, a site that occurs twice or is
            outside of spatial_shape.
    Waits:
        On a GPU for the extent of new sites, twice; not where `spatial_shape` and `batch_size` are
        both given, nor with `Coordinates`.
    Example:
        >>> coords = torch.tensor([[0, 1, 2, 3], [0, 4, 5, 6]])
        >>> x = pumice.SparseTensor(coords, torch.randn(2, 8))
        >>> x.shape, x.batch_size
        (torch.Size([2, 8]), 1)
    """

    __slots__ = ()

    def __init__(
        self,
        coords: torch.Tensor | Coordinates,
        features: torch.Tensor,
        *args: NoReturn,
        spatial_shape: Sequence[int] | None = None,
        batch_size: int | None = None,
        stride: Sequence[int] | None = None,
    ) -> None:
        if args:
            raise _C.UserError(
                f"{2 + len(args)} arguments in order: SparseTensor takes (coords, features), and spatial_shape=, "
                "batch_size= and stride= by name"
            )
        if not isinstance(features, torch.Tensor):
            raise _C.UserError(
                no_tensor("features", features)
                if not isinstance(features, Coordinates)
                else "features are Coordinates: SparseTensor takes (coords, features), in this order"
            )
        features = ordinary(features)
        _check_order(coords, features)
        if features.dim() != 2:
            raise _C.UserError(
                f"features have shape {tuple(features.shape)}: give [rows, channels]"
            )
        check_floating(features)
        if not isinstance(coords, Coordinates):
            if isinstance(coords, torch.Tensor) and coords.device != features.device:
                raise _C.UserError(
                    f"coords are on {coords.device} and features on {features.device}: "
                    ".to() brings one to the other"
                )
            coords = Coordinates(
                coords, spatial_shape=spatial_shape, batch_size=batch_size, stride=stride
            )
        elif not (spatial_shape is None and batch_size is None and stride is None):
            raise _C.UserError("spatial_shape, batch_size and stride are those of the Coordinates")
        if torch.compiler.is_compiling():
            torch._check(coords.rows == features.shape[0])
        elif len(coords) != features.shape[0]:
            raise _C.UserError(
                f"features have {features.shape[0]} rows and coords {len(coords)}: "
                "give one row for each site"
            )
        if _compiling():
            self.coords, self.features = coords, features
            return
        _set(self, "coords", coords)
        _set(self, "features", features)

    @classmethod
    def _of(cls, coords: Coordinates, features: torch.Tensor) -> Self:
        """A sparse tensor of what an operator returned, unchecked."""
        self: Any
        if _compiling():
            self = cls.__new__(cls)
            self.coords, self.features = coords, features
            return self
        self = Fields()
        self.coords = coords
        self.features = features
        self.__class__ = cls  # as fast as __new__, and past __setattr__
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if _compiling():
            super().__setattr__(name, value)
            return
        if name == "features":
            value = self.replace(features=value).features
        elif name == "coords":
            if not isinstance(value, Coordinates):
                raise _C.UserError(
                    f"x.coords = {kind_of(value)}: give Coordinates, or make another tensor with "
                    "pumice.SparseTensor(coords, x.features)"
                )
            if len(value) != len(self):
                raise _C.UserError(
                    f"x.coords = {len(value)} sites for {len(self)} rows of features: make another tensor "
                    "with pumice.SparseTensor(coords, features)"
                )
        elif not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f"a SparseTensor keeps coords and features alone, no {name!r}")
        else:
            raise AttributeError(
                f"{name!r} follows from coords and features: make another tensor with "
                "pumice.SparseTensor(coords, features)"
            )
        _set(self, name, value)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _torch_functions.call(cls, function, args, kwargs or {})

    def replace(self, *, features: torch.Tensor) -> SparseTensor:
        """Other features on the same sites, with the same maps.

        Args:
            features: floating [N, C'], with as many rows as there are sites.
        Raises:
            UserError: other numbers of rows or axes, and types that are not floating.
        """
        if not isinstance(features, torch.Tensor):
            raise _C.UserError(no_tensor("features", features))
        features = ordinary(features)
        check_floating(features)
        if torch.compiler.is_compiling():
            torch._check(features.shape[0] == self.features.shape[0])
        elif features.dim() != 2 or features.shape[0] != self.features.shape[0]:
            raise _C.UserError(
                f"features have shape {tuple(features.shape)}: give {self.features.shape[0]} rows, "
                "one for each site"
            )
        return SparseTensor._of(self.coords, features)

    # Properties of the features and of the sites, F and C under the names of other libraries.
    @property
    def indices(self) -> torch.Tensor:
        """int32 [N, 1 + D], batch first."""
        return self.coords.indices

    @property
    def F(self) -> torch.Tensor:  # noqa: N802
        """`features`, [N, C]."""
        return self.features

    @property
    def C(self) -> torch.Tensor:  # noqa: N802
        """`indices`, int32 [N, 1 + D]."""
        return self.coords.indices

    @property
    def batch_size(self) -> int:
        """How many batch items there are, those without rows too."""
        return self.coords.batch_size

    @property
    def spatial_shape(self) -> tuple[int, ...] | None:
        """Cells an axis, D numbers; None where the grid has no bounds."""
        return self.coords.spatial_shape

    @property
    def stride(self) -> tuple[int, ...]:
        """Length of a cell in cells of the finest level, D numbers."""
        return self.coords.stride

    @property
    def dimension(self) -> int:
        """D, the number of axes: 1 to 4."""
        return self.coords.dimension

    @property
    def shape(self) -> torch.Size:
        """The shape of the features: [N, C]."""
        return self.features.shape

    @property
    def requires_grad(self) -> bool:
        """Whether gradients go back to the features."""
        return self.features.requires_grad

    @property
    def device(self) -> torch.device:
        """Where features and sites are."""
        return self.features.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the features."""
        return self.features.dtype

    def dense(self, shape: Sequence[int] | None = None, low: Sequence[int] | None = None,
              crop: bool = False) -> torch.Tensor:
        """[batch_size, C, shape…], 0 where no site is.

        Args:
            shape: cells an axis; default: the spatial shape, else the box around the sites, whose extent
                and first cell are those of these very sites (a warning says so once).
            low: the first cell of the grid; default: 0.
            crop: leave out rows outside of the grid instead of refusing them.
        Waits:
            On a GPU where neither shape nor spatial shape is known.
        """
        if shape is None and not torch.compiler.is_compiling() and self.spatial_shape is None:
            warn_once(
                "dense",
                "dense() without a grid is the box around the sites, which differs from scan to scan: give "
                "dense(shape=…, low=…), or the tensor a spatial_shape",
            )
        return ops.to_dense(self.features, self.coords, shape=shape, low=low, crop=crop)

    @classmethod
    def from_dense(cls, dense: torch.Tensor, mask: torch.Tensor | None = None) -> SparseTensor:
        """The sites where any channel of a grid is not 0.

        Args:
            dense: floating [B, C, shape…].
            mask: bool [B, shape…], the sites instead.
        Waits:
            On a GPU for how many sites there are.
        """
        return cls._of(*ops.from_dense(dense, mask))

    if not TYPE_CHECKING:  # so that a type checker refuses it

        def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
            raise _C.UserError(
                "a SparseTensor is no function: leave out the (), since voxels.tensor is no method, and call the layer "
                "with it, layer(x)"
            )

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _torch_functions.MISSING]

    def __repr__(self) -> str:
        return (
            f"SparseTensor(features=[{len(self)}, {self.features.shape[1]}] {self.dtype}, "
            f"batch_size={self.batch_size}, stride={self.stride}, "
            f"spatial_shape={self.spatial_shape}, device={self.device})"
        )

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = {
            "sites": f"{len(self):,}",
            "channels": self.features.shape[1],
            "dtype": self.dtype,
            "batch size": self.batch_size,
            "stride": self.stride,
            "spatial shape": self.spatial_shape,
            "device": self.device,
        }
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table><caption>SparseTensor</caption>{cells}</table>"

    def __getstate__(self) -> tuple[Coordinates, torch.Tensor]:
        return self.coords, self.features

    def __setstate__(self, state: tuple[Coordinates, torch.Tensor]) -> None:
        for name, value in zip(("coords", "features"), state):
            _set(self, name, value)


# On the class: a `__getattr__` would double the time that Python takes to find any attribute.
for _name in _torch_functions.MISSING:
    setattr(SparseTensor, _name, _torch_functions.Missing(_name))
for _name in _torch_functions.RENAMED:
    setattr(SparseTensor, _name, _torch_functions.Renamed(_name))


def of_tensor(name: str, tensor: str) -> str:
    """The end of a sentence that something has no attribute `name`, where the sparse tensor that `tensor` makes of it
    has one; else empty."""
    if name not in ("coords", "features") and not hasattr(SparseTensor, name):
        return ""
    held = f"features.{name}" if name in _torch_functions.MISSING else _torch_functions.RENAMED.get(name, name)
    return f": it is {tensor}.{held}"


def _check_order(coords: Any, features: torch.Tensor) -> None:
    """Raises UserError where the two were given the other way round."""
    if (
        isinstance(coords, torch.Tensor)
        and coords.is_floating_point()
        and features.dim() == 2
        and not features.is_floating_point()
        and not features.is_complex()
        and 2 <= features.shape[1] <= 5
    ):
        raise _C.UserError(
            f"coords are {coords.dtype} {list(coords.shape)} and features {features.dtype} "
            f"{list(features.shape)}, the other way round: give SparseTensor(coords, features)"
        )


# torch.load reads what torch.save wrote without `weights_only=False`.
torch.serialization.add_safe_globals([SparseTensor])
