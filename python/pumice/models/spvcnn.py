"""Defines SPVCNN, a network for semantic segmentation with a branch of points beside the voxels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

import torch
from torch import Tensor

from .. import _C, nn
from .._checks import kind_of, sparse_from, whole_number
from ..tensor import SparseTensor
from .minkunet import WIDTHS, UNet
from .point_voxel import PointTensor


class SPVCNN(UNet):
    """The sparse point-voxel network of spvnas: MinkUNet42, and features of every point that are interpolated from the
    voxels after the stem, at the bottom, half way up and at the end, and become the voxels' features again on the
    way.

    Of a sparse tensor every site is a point, as spvnas does where the resolution of its points is that of its
    voxels. Its `spatial_shape` has to be a multiple of 16 on every axis, or absent. Checkpoints of spvnas have its
    names: `pumice.convert` from "torchsparse".

    Args:
        in_channels: channels of the features that go in.
        classes: channels of the scores.
        cr: multiplies the channels, which are rounded down as in spvnas.
        dropout: the share of features that become 0 in training.
    Returns:
        Of a call with a `PointTensor` scores of its points [P, classes]; with a sparse tensor scores on its sites.
        `batch_size` is that of points; default: the largest batch index and one.
    Raises:
        UserError: for other inputs, and a cr that leaves no channel.
    Waits:
        For a GPU, for how many sites each level has, and for the batch size of points where it is not given.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> models.SPVCNN(4, 19, cr=0.25).eval()(x).shape
        torch.Size([2, 19])
    """

    def __init__(
        self, in_channels: int = 4, classes: int = 19, cr: float = 1.0, dropout: float = 0.3
    ) -> None:
        """The arguments are those of the class."""
        if not (cr > 0 and math.isfinite(cr)) or int(cr * min(WIDTHS["spvnas"])) < 1:
            raise _C.UserError(f"cr = {cr}: it has to leave at least one channel of 32")
        super().__init__(in_channels, [int(cr * width) for width in WIDTHS["spvnas"]])
        width = self.widths
        self.cr = cr
        self.classes = whole_number("classes", classes, 1)
        self.classifier = torch.nn.Sequential(torch.nn.Linear(width[8], classes))
        self.point_transforms = torch.nn.ModuleList(
            nn.Sequential(
                nn.Linear(width[low], width[high]), nn.BatchNorm(width[high]), nn.ReLU(inplace=True)
            )
            for low, high in ((0, 4), (4, 6), (6, 8))
        )
        self.dropout = torch.nn.Dropout(dropout)

    if TYPE_CHECKING:

        @overload
        def __call__(self, x: SparseTensor) -> SparseTensor: ...

        @overload
        def __call__(self, x: PointTensor, batch_size: int | None = None) -> Tensor: ...

        def __call__(
            self, x: SparseTensor | PointTensor, batch_size: int | None = None
        ) -> SparseTensor | Tensor: ...

    def made_with(self, in_channels: int | None = None, outputs: int | None = None) -> str:
        ends = f"{in_channels or self.in_channels}, {outputs or self.classes}"
        return f"SPVCNN({ends})" if self.cr == 1 else f"SPVCNN({ends}, cr={self.cr})"

    def card(self) -> dict[str, str]:
        return {"network": "spvcnn", **self._sizes()}

    @overload
    def forward(self, x: SparseTensor) -> SparseTensor: ...

    @overload
    def forward(self, x: PointTensor, batch_size: int | None = None) -> Tensor: ...

    def forward(
        self, x: SparseTensor | PointTensor, batch_size: int | None = None
    ) -> SparseTensor | Tensor:
        """`batch_size`: of points; by default the largest batch index and one, which on a GPU has to
        be waited for."""
        if isinstance(x, SparseTensor):
            return SparseTensor._of(x.coords, self._scores(PointTensor.at_sites(x), x))
        if not isinstance(x, PointTensor):
            raise _C.UserError(
                f"SPVCNN takes a PointTensor or a SparseTensor, and got {kind_of(x)}: "
                + sparse_from(
                    x,
                    "make one with pumice.models.PointTensor.of(points, size=…) or "
                    "pumice.SparseTensor(coords, features)",
                )
            )
        return self._scores(x, x.voxels(batch_size))

    def _scores(self, points: PointTensor, voxels: SparseTensor) -> Tensor:
        stem = self.stem(voxels)
        points = points.replace(points.from_voxels(stem))
        first, second, third, fourth, bottom = self.down(points.to_voxels(stem.coords))
        points = self._further(0, points, bottom)
        x = self.up(1, self._dropped(points, bottom), fourth)
        x = self.up(2, x, third)
        points = self._further(1, points, x)
        x = self.up(3, self._dropped(points, x), second)
        x = self.up(4, x, stem)
        return self.classifier(self._further(2, points, x).features)

    def _further(self, number: int, points: PointTensor, voxels: SparseTensor) -> PointTensor:
        # Layers that look at features alone need no sites, and points have none.
        own = self.point_transforms[number](SparseTensor._of(None, points.features))
        return points.replace(points.from_voxels(voxels) + own.features)

    def _dropped(self, points: PointTensor, like: SparseTensor) -> SparseTensor:
        voxels = points.to_voxels(like.coords)
        return voxels.replace(features=self.dropout(voxels.features))
