"""Features on sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _C
from ._checks import check_floating
from .coords import Coordinates


class SparseTensor:
    """Features of distinct sites: row i of `features` belongs to row i of `indices`.

    coords: int32 [N, 1 + D], batch first, or the `Coordinates` of another tensor.
    features: floating [N, C], on the same device.
    """

    __slots__ = ("coords", "features")

    def __init__(
        self,
        coords: torch.Tensor | Coordinates,
        features: torch.Tensor,
        *,
        spatial_shape: Sequence[int] | None = None,
        batch_size: int | None = None,
        stride: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(features, torch.Tensor):
            raise _C.UserError(
                f"features is a {type(features).__name__}: torch.as_tensor(features) makes a tensor"
            )
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
        self.coords = coords
        self.features = features

    @classmethod
    def _of(cls, coords: Coordinates, features: torch.Tensor) -> SparseTensor:
        """Unchecked: what operators return."""
        self = cls.__new__(cls)
        self.coords = coords
        self.features = features
        return self

    def replace(self, *, features: torch.Tensor) -> SparseTensor:
        """Other features on the same sites, with the same maps."""
        if torch.compiler.is_compiling():
            torch._check(features.shape[0] == self.features.shape[0])
        elif features.dim() != 2 or features.shape[0] != self.features.shape[0]:
            raise _C.UserError(
                f"features have shape {tuple(features.shape)}: give {self.features.shape[0]} rows, "
                "one for each site"
            )
        check_floating(features)
        return SparseTensor._of(self.coords, features)

    # The names people know these things by.
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
    def device(self) -> torch.device:
        """Where features and sites are."""
        return self.features.device

    @property
    def dtype(self) -> torch.dtype:
        """That of the features."""
        return self.features.dtype

    def __len__(self) -> int:
        return self.features.shape[0]

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """As torch.Tensor.to: the features change type, to a floating one, and both move."""
        features = self.features.to(*args, **kwargs)
        if features is self.features:
            return self
        check_floating(features)
        return SparseTensor._of(self.coords.to(features.device), features)

    def cpu(self) -> SparseTensor:
        """Both on the host; waits for a GPU."""
        return self.to("cpu")

    def cuda(self, device: int | torch.device | None = None) -> SparseTensor:
        """Both on a GPU, the current one by default."""
        return self.to(torch.device("cuda") if device is None else torch.device("cuda", device)
                       if isinstance(device, int) else device)

    def detach(self) -> SparseTensor:
        """The same values, through which no gradient goes back."""
        return SparseTensor._of(self.coords, self.features.detach())

    def dense(self, shape: Sequence[int] | None = None, low: Sequence[int] | None = None,
              crop: bool = False) -> torch.Tensor:
        """[batch_size, C, shape…], 0 where no site is. Default: the spatial shape, else the box
        around the sites."""
        from .ops import to_dense

        return to_dense(self.features, self.coords, shape=shape, low=low, crop=crop)

    @classmethod
    def from_dense(cls, dense: torch.Tensor, mask: torch.Tensor | None = None) -> SparseTensor:
        """dense [B, C, shape…] to the sites where any channel is not 0, or where `mask` [B,
        shape…] says."""
        from .ops import from_dense

        return cls._of(*from_dense(dense, mask))

    def __add__(self, other: SparseTensor) -> SparseTensor:
        """On the same sites; `ops.union_add` is for different ones."""
        features = features_on(self.coords, other, "+")
        return SparseTensor._of(self.coords, self.features + features)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(features=[{len(self)}, {self.features.shape[1]}] {self.dtype}, "
            f"batch_size={self.batch_size}, stride={self.stride}, "
            f"spatial_shape={self.spatial_shape}, device={self.device})"
        )

    def __getstate__(self) -> tuple[Coordinates, torch.Tensor]:
        return self.coords, self.features

    def __setstate__(self, state: tuple[Coordinates, torch.Tensor]) -> None:
        self.coords, self.features = state


def check_sparse(what: str, x: Any) -> None:
    """Raises UserError, in the name of `what`, unless `x` is a SparseTensor."""
    if not isinstance(x, SparseTensor):
        raise _C.UserError(
            f"{what} takes sparse tensors, and got a {type(x).__name__}: "
            "x.replace(features=…) makes one of features on the sites of x"
        )


def features_on(coords: Coordinates, x: Any, what: str) -> torch.Tensor:
    """The features of `x`. Raises UserError, in the name of `what`, unless it is a SparseTensor on
    `coords`."""
    check_sparse(what, x)
    if x.coords is coords or x.coords.is_same(coords):
        return x.features
    if torch.compiler.is_compiling():  # the graph finds out when it runs
        from .ops.graph import on_sites

        return on_sites(x.features, x.coords, coords, what)
    raise _C.UserError(
        f"{what}: the tensors have {len(coords)} and {len(x)} rows on different sites; "
        "use pumice.ops.union_add, or give one the Coordinates of the other"
    )
