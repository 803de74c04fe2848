"""Broadcasting, pruning, uniting, joining, and the way to and from dense tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch

from ... import ops
from ..._checks import at_least_one, kind_of
from ...nn import deferred
from ...tensor import SparseTensor as Sparse
from ..foreign import PeerAssertionError, check_rows
from ..mistakes import PeerTypeError
from .base import Tensor, check_kind
from .convolution import MinkowskiModuleBase
from .enums import BroadcastMode, check_member
from .tensor import SparseTensor, TensorField


def _rows_of_items(input: Any, input_glob: SparseTensor) -> torch.Tensor:
    """[rows, C]: for each row the features of its batch item."""
    check_kind("input", input, Tensor)
    check_kind("input_glob", input_glob, Tensor)
    items = input_glob.C[:, 0].long()
    place = items.new_full((int(items.max()) + 1 if len(items) else 0,), -1)
    place[items] = torch.arange(len(items), device=items.device)
    return input_glob.F[place[input.C[:, 0].long()]]


class MinkowskiBroadcastBase(MinkowskiModuleBase):
    """Every row with the features of its batch item, by a BroadcastMode."""

    def __init__(self, operation_type: BroadcastMode) -> None:
        super().__init__()
        check_member("operation_type", operation_type, BroadcastMode)
        self.operation_type = operation_type

    def forward(self, input: Any, input_glob: SparseTensor) -> Any:
        added = self.operation_type is BroadcastMode.ELEMENTWISE_ADDITON
        items = _rows_of_items(input, input_glob)
        return input._with(input.F + items if added else input.F * items)


class MinkowskiBroadcastAddition(MinkowskiBroadcastBase):
    def __init__(self) -> None:
        super().__init__(BroadcastMode.ELEMENTWISE_ADDITON)


class MinkowskiBroadcastMultiplication(MinkowskiBroadcastBase):
    def __init__(self) -> None:
        super().__init__(BroadcastMode.ELEMENTWISE_MULTIPLICATION)


class MinkowskiBroadcast(MinkowskiModuleBase):
    def forward(self, input: Any, input_glob: SparseTensor) -> Any:
        return input._with(_rows_of_items(input, input_glob))


class MinkowskiBroadcastConcatenation(MinkowskiModuleBase):
    def forward(self, input: Any, input_glob: SparseTensor) -> Any:
        return input._with(torch.cat([input.F, _rows_of_items(input, input_glob)], 1))


class MinkowskiPruning(MinkowskiModuleBase):
    """The rows where `mask` is true, in their order."""

    def forward(self, input: SparseTensor, mask: torch.Tensor) -> SparseTensor:
        check_kind("input", input, SparseTensor)
        check_rows("mask", mask)
        if mask.is_floating_point() or mask.is_complex():
            raise PeerAssertionError(f"mask is {mask.dtype}: give bool, as scores > 0.5")
        kept = ops.prune(Sparse._of(input.sites, input.F), mask.to(input.device))
        name = input._key.get_key()[1] or "pruned"
        return SparseTensor._at(kept.features, kept.coords, input._manager, name)


class MinkowskiUnion(MinkowskiModuleBase):
    """The sum, on the sites of any: the rows of the first, then what each further one adds."""

    def forward(self, *inputs: SparseTensor) -> SparseTensor:
        at_least_one("MinkowskiUnion: inputs", inputs, "SparseTensor")
        for number, x in enumerate(inputs):
            check_kind(f"MinkowskiUnion: inputs[{number}]", x, SparseTensor)
        return reduce(lambda a, b: a + b, inputs)


class MinkowskiStackCat(torch.nn.Sequential):
    """Every module on the same input, channels side by side."""

    def forward(self, x: Any) -> Any:
        return cat([module(x) for module in self])


class MinkowskiStackSum(torch.nn.Sequential):
    def forward(self, x: Any) -> Any:
        return reduce(lambda a, b: a + b, [module(x) for module in self])


class MinkowskiStackMean(torch.nn.Sequential):
    def forward(self, x: Any) -> Any:
        return mean([module(x) for module in self])


class MinkowskiStackVar(torch.nn.Sequential):
    def forward(self, x: Any) -> Any:
        return var([module(x) for module in self])


class MinkowskiToFeature(MinkowskiModuleBase):
    def forward(self, x: Any) -> torch.Tensor:
        return x.F


class MinkowskiToDenseTensor(MinkowskiModuleBase):
    def __init__(self, shape: Any = None) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, input: SparseTensor) -> torch.Tensor:
        return input.dense(shape=self.shape)[0]


class MinkowskiToSparseTensor(MinkowskiModuleBase):
    """A field's sparse tensor, or that of a dense one [B, C, ...]: the cells that are not 0 where both arguments are given, else
    all cells, at `coordinates` if there are some. So does MinkowskiEngine, whose documentation says otherwise."""

    def __init__(self, remove_zeros: bool = True, coordinates: Any = None) -> None:
        super().__init__()
        self.remove_zeros, self.coordinates = remove_zeros, coordinates

    def forward(self, input: Any) -> SparseTensor:
        if isinstance(input, TensorField):
            return input.sparse()
        if self.remove_zeros and self.coordinates is not None:
            return to_sparse(input)
        return to_sparse_all(input, self.coordinates)


def cat(*tensors: Any) -> Any:
    """Channels side by side, at the same sites (or points)."""
    inputs = _at_same_sites("cat", tensors)
    later = deferred.joined([x._held for x in inputs])
    return inputs[0]._with(torch.cat([x.F for x in inputs], 1) if later is None else later)


def _sum(*tensors: Any) -> Any:
    """Of the features of several tensors at the same sites (or points)."""
    return _joined("sum", tensors, lambda features: torch.stack(features).sum(0))


def mean(*tensors: Any) -> Any:
    """Of the features of several tensors at the same sites (or points)."""
    return _joined("mean", tensors, lambda features: torch.stack(features).mean(0))


def var(*tensors: Any) -> Any:
    """The variance, without Bessel's correction, of the features of several tensors at the same sites (or
    points)."""

    def variance(features: list[torch.Tensor]) -> torch.Tensor:
        together = torch.stack(features)
        return (together - together.mean(0)).square().mean(0)

    return _joined("var", tensors, variance)


def _joined(name: str, tensors: Any, join: Callable[[list[torch.Tensor]], torch.Tensor]) -> Any:
    inputs = _at_same_sites(name, tensors)
    return inputs[0]._with(join([x.F for x in inputs]))


def _at_same_sites(name: str, tensors: Any) -> Sequence[Any]:
    """`tensors`: several, or one list of them."""
    inputs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    at_least_one(f"ME.{name}: tensors", inputs, "SparseTensor")
    first = inputs[0]
    for number, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            kind = "a torch.Tensor" if isinstance(x, torch.Tensor) else kind_of(x)
            raise PeerTypeError(
                f"ME.{name}: tensors[{number}] is {kind}: give sparse tensors at the same coordinates, as "
                f"ME.{name}(x, y)"
            )
        if x._manager is not first._manager:
            raise PeerAssertionError(
                f"ME.{name}: tensors[{number}] has another coordinate manager than tensors[0]: make it with "
                "coordinate_manager=x.coordinate_manager, or call "
                "set_sparse_tensor_operation_mode(SHARE_COORDINATE_MANAGER) first"
            )
        if x._key != first._key:
            raise PeerAssertionError(
                f"ME.{name}: tensors[{number}] is at {x._key} and tensors[0] at {first._key}: give tensors at the "
                "same coordinates, made with coordinate_map_key=x.coordinate_map_key"
            )
    return inputs


def dense_coordinates(shape: Any) -> torch.Tensor:
    """int32 [B · extents, 1 + D] of every cell of a tensor of shape [B, C, ...]."""
    ranges = [torch.arange(extent) for extent in (shape[0], *shape[2:])]
    return torch.cartesian_prod(*ranges).int()


def to_sparse(
    x: torch.Tensor, format: str | None = None, coordinates: Any = None, device: Any = None
) -> SparseTensor:
    """The sites of a dense tensor where any channel is not 0. `format`: one letter for each axis, B first, C
    for the channels, X for the others, as "BXXXC"; [B, C, ...] without one."""
    check_rows("x", x)
    letters = format or "BC" + "X" * (x.dim() - 2)
    if x.dim() < 3 or len(letters) != x.dim() or sorted(letters) != sorted("BC" + "X" * (x.dim() - 2)) or (
        letters[0] != "B"
    ):
        raise PeerAssertionError(
            f"to_sparse: format = {format!r} for shape {tuple(x.shape)}: give one letter for each of at least "
            "3 axes, B first, C once, and X for the others"
        )
    channels_last = x.movedim(letters.index("C"), -1)
    cells = (channels_last.detach() != 0).any(-1).nonzero()
    return SparseTensor(channels_last[tuple(cells.T)], cells.int(), device=device)


def to_sparse_all(dense_tensor: torch.Tensor, coordinates: Any = None) -> SparseTensor:
    """[B, C, ...] to all its sites."""
    check_rows("dense_tensor", dense_tensor)
    cells = dense_coordinates(dense_tensor.shape) if coordinates is None else coordinates
    features = dense_tensor.movedim(1, -1).reshape(-1, dense_tensor.shape[1])
    return SparseTensor(features, cells.to(dense_tensor.device))


class MinkowskiNetwork(torch.nn.Module):
    """A base that remembers its dimension."""

    def __init__(self, D: int) -> None:  # noqa: N803
        super().__init__()
        self.D = D
