"""Describes how each library lays out the weight of a sparse convolution: a table, and the two permutations that
follow from it.

The common form is [k0, ..., k(D-1), in / groups, out]: axis 0 is the first coordinate column after the
batch index, offsets count from 0, and nothing is flipped. `to_common` and `from_common` only permute and
reshape, so gradients pass through both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from .. import _C


@dataclass(frozen=True)
class Layout:
    """One library's convention.

    Args:
        name: of the library.
        parameter: the name of a weight.
        axes: the order of the parameter's axes: k (all kernel axes), K (all of them as one), i (in), o (out).
        fastest: which axis of a K runs fastest: "last", "first", or "parity" (odd volumes first, even last).
        pointwise: a 1x1 kernel of stride 1 is kept "same" as any other, as a "matrix" [in, out], or "swapped": in
            the shape of any other, but with the memory of [in, out].
        bias_axes: of a bias.
        groups: whether there are layers of groups.
        norm_child: under which name norms keep PyTorch's.
        linear_child: under which name linear layers keep PyTorch's.
    Example:
        >>> convert.LAYOUTS["spconv"].axes
        'oki'
    """

    name: str
    parameter: str
    axes: str
    fastest: str = "last"
    pointwise: str = "same"
    bias_axes: int = 1
    groups: bool = False
    norm_child: str = ""  # norms and linear layers that wrap PyTorch's keep them under this name
    linear_child: str = ""

    @property
    def flat(self) -> bool:
        """Whether all kernel axes are one axis of the parameter."""
        return "K" in self.axes


LAYOUTS: dict[str, Layout] = {
    row.name: row
    for row in (
        Layout("pumice", "weight", "Kio", groups=True),
        Layout("spconv", "weight", "oki", pointwise="swapped"),
        Layout("spconv1", "weight", "kio"),
        Layout("torchsparse", "kernel", "Kio", "parity", "matrix"),
        Layout("minkowski", "kernel", "Kio", "first", "matrix", bias_axes=2, norm_child="bn",
               linear_child="linear"),
        Layout("warpconvnet", "weight", "Kio", groups=True),
    )
}


def first_is_fastest(layout: Layout, size: Sequence[int]) -> bool:
    """Which axis of a flat parameter of that size runs fastest: the first, or else the last."""
    if layout.fastest == "parity":
        return math.prod(size) % 2 == 1
    return layout.fastest == "first"


def axis_order(
    layout: Layout, shape: Sequence[int], size: Sequence[int], strided: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How a parameter without groups becomes the common form: looked at in a shape, with its axes in an order.

    Args:
        layout: a row of `LAYOUTS`.
        shape: of the parameter.
        size: of the kernel, a number an axis.
        strided: whether the layer's stride is not 1.
    Returns:
        `(to look at, order)`: parameter.reshape(to look at).permute(order) is [k0, …, in, out].
    Raises:
        Nothing.
    Example:
        >>> convert.layouts.axis_order(convert.LAYOUTS["spconv"], (8, 3, 3, 3, 4), (3, 3, 3))
        ((8, 3, 3, 3, 4), (1, 2, 3, 4, 0))
    """
    dimension, shape = len(size), tuple(shape)
    as_it_is = tuple(range(dimension + 2))
    if math.prod(size) == 1 and not strided and layout.pointwise != "same":
        matrix = (shape[-1], shape[0]) if layout.pointwise == "swapped" else shape
        return (*size, *matrix), as_it_is
    if layout.axes == "oki":
        return shape, (*range(1, dimension + 2), 0)
    if layout.axes == "kio":
        return shape, as_it_is
    if first_is_fastest(layout, size):
        return (*reversed(size), *shape[1:]), (*range(dimension - 1, -1, -1), dimension, dimension + 1)
    return (*size, *shape[1:]), as_it_is


def to_common(layout: Layout, weight: Tensor, size: Sequence[int], strided: bool = False) -> Tensor:
    """A library's parameter in the common form.

    Args:
        layout: a row of `LAYOUTS`.
        weight: the parameter.
        size: of the kernel, a number an axis.
        strided: whether the layer's stride is not 1, which a 1x1 kernel is kept differently for.
    Returns:
        [k0, …, in / groups, out], a view where that is possible.
    Raises:
        RuntimeError: PyTorch's, for another shape.
    Waits:
        Never.
    Example:
        >>> weight = torch.empty(8, 3, 3, 3, 4)
        >>> convert.to_common(convert.LAYOUTS["spconv"], weight, (3, 3, 3)).shape
        torch.Size([3, 3, 3, 4, 8])
    """
    if layout.flat and weight.dim() == 4:  # [K, groups, in / groups, out / groups]
        weight = weight.permute(0, 2, 1, 3).flatten(2)
    shape, order = axis_order(layout, weight.shape, size, strided)
    return weight.reshape(shape).permute(order)


def from_common(layout: Layout, common: Tensor, strided: bool = False, groups: int = 1) -> Tensor:
    """The common form as a library's parameter.

    Args:
        layout: a row of `LAYOUTS`.
        common: [k0, …, in / groups, out].
        strided: whether the layer's stride is not 1.
        groups: of the layer.
    Returns:
        The parameter, contiguous.
    Raises:
        UserError: for groups that the library does not have.
    Waits:
        Never.
    Example:
        >>> common = torch.empty(3, 3, 3, 4, 8)
        >>> convert.from_common(convert.LAYOUTS["pumice"], common).shape
        torch.Size([27, 4, 8])
    """
    dimension = common.dim() - 2
    size, (inputs, outputs) = common.shape[:dimension], common.shape[dimension:]
    if groups != 1 and not layout.groups:
        raise _C.UserError(f"{layout.name} has no layers of {groups} groups")
    if math.prod(size) == 1 and not strided and layout.pointwise != "same":
        matrix = common.reshape(inputs, outputs).contiguous()
        if layout.pointwise == "matrix":
            return matrix
        return matrix.reshape(outputs, *size, inputs)
    if layout.axes == "oki":
        return common.permute(dimension + 1, *range(dimension + 1)).contiguous()
    if layout.axes == "kio":
        return common.contiguous()
    if first_is_fastest(layout, size):
        common = common.permute(*range(dimension - 1, -1, -1), dimension, dimension + 1)
    flat = common.reshape(math.prod(size), inputs, outputs)
    if groups != 1 and layout.name == "warpconvnet":
        flat = flat.reshape(len(flat), inputs, groups, outputs // groups).permute(0, 2, 1, 3)
    return flat.contiguous()


def parameter_shape(
    layout: Layout, size: Sequence[int], inputs: int, outputs: int, strided: bool = False
) -> tuple[int, ...]:
    """The shape of the parameter of one group."""
    volume = math.prod(size)
    if layout.pointwise == "matrix" and volume == 1 and not strided:
        return (inputs, outputs)
    parts = {"k": tuple(size), "K": (volume,), "i": (inputs,), "o": (outputs,)}
    return tuple(extent for letter in layout.axes for extent in parts[letter])


def axes_reversed(common: Tensor) -> Tensor:
    """The weight for coordinates in the opposite order (x, y, z for z, y, x)."""
    dimension = common.dim() - 2
    return common.permute(*range(dimension - 1, -1, -1), dimension, dimension + 1)
