"""Converts a whole state dict from one library's layout to another's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _C
from .._checks import kind_of
from .kernels import Choices, chosen, is_kernel, kernel_size
from .layouts import LAYOUTS, Layout, axes_reversed, from_common, to_common
from .parity import error_of
from .wording import named, passed

_NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
_TOLERANCE = 1e-10  # of float64 sums of a few thousand products, relative


@dataclass
class Kernel:
    """How one convolution was converted.

    Args:
        name: of the source.
        new_name: of the target.
        shape: of the source.
        new_shape: of the target.
        size: of the kernel.
        error: of its check, relative; None: not checked.
    Example:
        >>> state = {"a.weight": torch.ones(8, 3, 3, 3, 4)}
        >>> convert.convert_state(state, "spconv", "pumice").kernels[0].new_shape
        (27, 4, 8)
    """

    name: str
    new_name: str
    shape: tuple[int, ...]
    new_shape: tuple[int, ...]
    size: tuple[int, ...]
    error: float | None = None


@dataclass
class Converted:
    """A converted state, in the names and layouts of the target, and how each parameter was converted, by its name in
    the source.

    Args:
        tensors: of the target, by name.
        kernels: the convolutions.
        kept: what was carried over as it is.
        dropped: what was left out.
    Example:
        >>> state = {"a.weight": torch.ones(8, 3, 3, 3, 4), "b.weight": torch.ones(8)}
        >>> convert.convert_state(state, "spconv", "pumice").kept
        ['b.weight']
    """

    tensors: dict[str, Tensor]
    kernels: list[Kernel]
    kept: list[str]
    dropped: list[str]


def convert_state(
    state: Mapping[str, Tensor | np.ndarray],
    source: str,
    target: str,
    choices: Choices | None = None,
    check: bool = True,
) -> Converted:
    """A whole state dict from one library's names and layouts to another's.

    Args:
        state: tensors by name; arrays of NumPy are copied into tensors.
        source: a name of `LAYOUTS`, as "spconv".
        target: another.
        choices: what the state does not tell; default: nothing.
        check: whether each converted layer is compared with the original.
    Returns:
        A `Converted`.
    Raises:
        UserError: for what is not understood, saying what to pass, for a state without convolutions of the source,
        and where a converted layer gives other numbers than the original.
    Waits:
        Never.
    Example:
        >>> state = {"a.weight": torch.ones(8, 3, 3, 3, 4)}
        >>> convert.convert_state(state, "spconv", "pumice").tensors["a.weight"].shape
        torch.Size([27, 4, 8])
    """
    return convert_held("state", state, source, target, choices, check)


def convert_held(
    what: str,
    state: Mapping[str, Tensor | np.ndarray],
    source: str,
    target: str,
    choices: Choices | None,
    check: bool,
) -> Converted:
    """`convert_state` of a state that its last error calls `what`."""
    choices = Choices() if choices is None else choices
    if not isinstance(choices, Choices):
        raise _C.UserError(f"choices is {kind_of(choices)}: give pumice.convert.Choices(…), as Choices(drop=['head.*'])")
    reads, writes = _layout(source), _layout(target)
    tensors = _tensors(state, choices)
    choices.check(tensors)
    result = Converted({}, [], [], [])
    biases: set[str] = set()
    for name, tensor in tensors.items():
        if chosen(name, choices.drop) or _is_bookkeeping(name, writes):
            result.dropped.append(name)
        elif chosen(name, choices.keep):
            result.kept.append(name)
            _put(result, name, tensor, choices)
        elif is_kernel(reads, name, tensor, choices.dimension):
            _kernel(result, name, tensor, reads, writes, choices, check)
            biases.add(name.rpartition(".")[0] + ".bias")
        elif not _is_ordinary(reads, name, tensor):
            raise _C.UserError(
                f"{name} of shape {tuple(tensor.shape)} and {tensor.dtype} is nothing that {source} has in "
                f"{choices.dimension} dimensions: pass {passed('keep', name)} to carry it over as it is, or "
                f"{passed('drop', name)} to leave it out"
            )
    done = {kernel.name for kernel in result.kernels} | set(result.kept) | set(result.dropped)
    for name, tensor in tensors.items():
        if name not in done:
            if name in biases:
                tensor = tensor.reshape(-1) if writes.bias_axes == 1 else tensor.reshape(1, -1)
            else:
                result.kept.append(name)
            _put(result, _ordinary_name(name, tensor, tensors, reads, writes), tensor, choices)
    if not result.kernels:
        raise _C.UserError(
            f"{what} has no convolution as {source} writes them in {choices.dimension} dimensions: change "
            f"{named('source')} or {named('dimension')}"
        )
    return result


def _tensors(state: Mapping[str, Any], choices: Choices) -> dict[str, Tensor]:
    """`state`, arrays as tensors. Raises UserError for anything else in it that is not dropped."""
    if not isinstance(state, Mapping):
        raise _C.UserError(f"state is {kind_of(state)}: give tensors by name, as model.state_dict() has them")
    tensors = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            try:
                value = torch.tensor(value)
            except TypeError as error:
                raise _C.UserError(f"{name} is an array of {value.dtype}: give numbers, as float32") from error
        if not isinstance(value, Tensor) and chosen(name, choices.drop) is None:
            raise _C.UserError(
                f"{name} is no tensor, but of type {type(value).__name__}: give model.state_dict(), or pass "
                + passed("drop", name)
            )
        tensors[name] = value
    return tensors


def _layout(name: str) -> Layout:
    if name not in LAYOUTS:
        raise _C.UserError(f"{name!r} is no library known here: there are {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def _kernel(
    result: Converted, name: str, tensor: Tensor, reads: Layout, writes: Layout, choices: Choices, check: bool
) -> None:
    size = kernel_size(reads, name, tensor, choices)
    pointwise = max(size) == 1
    # A flat 1x1 kernel of three axes says by itself that its layer is strided.
    told = reads.pointwise == "matrix" and tensor.dim() == 3
    strided = pointwise and (told or chosen(name, choices.strided) is not None)
    groups = tensor.shape[1] if tensor.dim() == 4 and reads.name == "warpconvnet" else 1
    common = to_common(reads, tensor, size, strided)
    if choices.reverse_axes:
        common = axes_reversed(common)
    new = from_common(writes, common, strided, groups)
    new_name = name[: -len(reads.parameter)] + writes.parameter
    kernel = Kernel(name, new_name, tuple(tensor.shape), tuple(new.shape), size)
    if check:
        read_back = to_common(writes, new, tuple(common.shape[:-2]), strided)
        kernel.error = error_of(reads, tensor, size, read_back, groups, strided, choices.reverse_axes)
        if not kernel.error <= _TOLERANCE:
            raise _C.UserError(
                f"{name}: converted to {writes.name} it gives other numbers than in {reads.name} (relative "
                f"error {kernel.error:.1e}); nothing is written"
            )
    kernel.new_name = _put(result, new_name, new, choices)
    result.kernels.append(kernel)


def _put(result: Converted, name: str, tensor: Tensor, choices: Choices) -> str:
    for pattern, replacement in choices.rename:
        name = re.sub(pattern, replacement, name)
    if name in result.tensors:
        raise _C.UserError(f"two entries would be called {name}: change {named('rename')}")
    result.tensors[name] = tensor
    return name


def _is_bookkeeping(name: str, writes: Layout) -> bool:
    """What no network of the target has."""
    last = name.rpartition(".")[2]
    if last == "max_num_voxels_during_training":
        return writes.name != "spconv"
    return writes.name == "pumice" and last in ("num_batches_tracked", "global_step")


def _is_ordinary(reads: Layout, name: str, tensor: Tensor) -> bool:
    """Norms, linear layers, biases, and dense layers of PyTorch beside the sparse ones."""
    last = name.rpartition(".")[2]
    if last in ("num_batches_tracked", "global_step", "max_num_voxels_during_training"):
        return tensor.numel() == 1
    if not tensor.is_floating_point():
        return False
    if last in ("bias", "running_mean", "running_var"):
        return tensor.dim() == 1 or (tensor.dim() == 2 and tensor.shape[0] == 1)
    if last == "weight":
        return tensor.dim() in (1, 2, 4) or (reads.flat and tensor.dim() == 5)
    return False


def _ordinary_name(
    name: str, tensor: Tensor, state: Mapping[str, Tensor], reads: Layout, writes: Layout
) -> str:
    """Norms and linear layers that wrap PyTorch's have one more name before their parameters."""
    layer, _, last = name.rpartition(".")
    is_norm = f"{layer}.running_mean" in state and last in _NORM
    weight = state.get(f"{layer}.weight")
    is_linear = not is_norm and last in ("weight", "bias") and weight is not None and weight.dim() == 2
    for applies, mine, theirs in (
        (is_norm, reads.norm_child, writes.norm_child),
        (is_linear, reads.linear_child, writes.linear_child),
    ):
        if applies and mine != theirs:
            if mine and layer.endswith("." + mine):
                layer = layer[: -len(mine) - 1]
            if theirs:
                layer = f"{layer}.{theirs}"
    return f"{layer}.{last}" if layer else last


def as_type(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Floating tensors in another type; the rest as it is."""
    return {n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()}
