"""Tensors by key: between features with a coordinate map key, as functions take them, and sparse tensors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ... import ops
from ..foreign import PeerAssertionError
from .coordinates import CoordinateManager, CoordinateMapKey, check_key, check_manager
from .kernels import KernelGenerator, check_generator, find_map, weight_of
from .pooling import kind_of
from .tensor import SparseTensor, TensorField


def tensor_at(features: Tensor, key: CoordinateMapKey, manager: CoordinateManager | None) -> Any:
    """The sparse tensor, or the field, of features at a key."""
    check_manager(manager)
    assert manager is not None
    if key in manager._fields:
        return TensorField(features, coordinate_field_map_key=key, coordinate_manager=manager)
    return SparseTensor(features, coordinate_map_key=key, coordinate_manager=manager)


def is_set(key: CoordinateMapKey | None) -> bool:
    return key is not None and key.is_key_set()


def features_of(y: SparseTensor, out_key: CoordinateMapKey | None) -> Tensor:
    """The features; `out_key` names their sites from here on, and is refused where it names others."""
    if out_key is not None and not out_key.is_key_set():
        out_key._take(y.coordinate_map_key)
    if out_key is not None and y._manager.sites(out_key) is not y.sites:
        raise PeerAssertionError(
            f"out_coordinate_map_key = {out_key}: the result is at {y.coordinate_map_key}; give that one, a new "
            "CoordinateMapKey(1 + D), or None"
        )
    return y.F


def convolve(
    x: SparseTensor, weight: Tensor, kernel: KernelGenerator, out_key: CoordinateMapKey | None,
    transposed: bool,
) -> Tensor:
    """By `weight` [K, in, out], or [in, out], in MinkowskiEngine's order of offsets."""
    check_generator(kernel)
    map, y = _to(x, kernel, out_key, transposed, kernel.expand_coordinates)
    turned = weight_of(kernel, strided=weight.dim() == 3).turn(weight)
    return features_of(y(ops.convolution(x.F, turned.contiguous(), map, None)), out_key)


def pool(
    x: SparseTensor, mode: Any, kernel: KernelGenerator, out_key: CoordinateMapKey | None, transposed: bool
) -> Tensor:
    check_generator(kernel)
    generative = transposed and kernel.expand_coordinates  # as MinkowskiEngine's pools read it
    map, y = _to(x, kernel, out_key, transposed, generative, pools=True)
    kind = kind_of(mode)  # which refuses others
    return features_of(y(ops.pool(x.F, map, "sum" if transposed else kind)), out_key)


def _to(
    x: SparseTensor, kernel: KernelGenerator, out_key: CoordinateMapKey | None, transposed: bool,
    generative: bool, pools: bool = False,
) -> tuple[ops.Map, Any]:
    """The map of a layer, and what makes a tensor of features at its end."""
    if out_key is not None:
        check_key("out_coordinate_map_key", out_key)
    stays = kernel.requires_strided_coordinates and not generative and out_key == x._key
    wanted = out_key if is_set(out_key) and not (stays and not transposed) else None
    map, sites = find_map(x, kernel, wanted, transposed, generative, pools)
    name = x._key.get_key()[1]
    return map, lambda features: SparseTensor._at(features, sites, x._manager, name)
