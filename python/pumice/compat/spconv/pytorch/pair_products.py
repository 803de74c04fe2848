"""Convolution through tables of pairs, and its gradients, as functions of spconv that custom layers call.

Layers of this package go through kernel maps instead, which is several times as fast. Here each offset
is one product of matrices; sums over offsets are kept in float32 where features are narrower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .... import _C
from ...foreign import PeerAssertionError
from ..core import ConvAlgo
from ..cumm.tensorview import gemm
from ..tools import CUDAKernelTimer
from .activate import activate
from .pairs import words_of

# How many rows share one mask of what implicit_gemm returns beside its sums: a tile of a kernel.
MASK_WIDTH = 32

_None_ = gemm.Activation.None_


def indice_conv(
    features: Tensor,
    filters: Tensor,
    indice_pairs: Tensor,
    indice_pair_num: Tensor,
    num_activate_out: int,
    inverse: bool = False,
    subm: bool = False,
    algo: ConvAlgo = ConvAlgo.Native,
    timer: CUDAKernelTimer = CUDAKernelTimer(False),
    bias: Tensor | None = None,
    act_alpha: float = 0.0,
    act_beta: float = 0.0,
    act_type: gemm.Activation = _None_,
) -> Tensor:
    """[num_activate_out, out] of features [N, in] and filters [out, *kernel, in], through the pairs of
    get_indice_pairs. `inverse`: from their outputs to their inputs. Waits for the numbers of pairs."""
    weight = _weight(features, filters)
    out = _zeros(features, num_activate_out, weight.shape[0])
    with _plain(features):
        for k, inputs, outputs in pairs_of(indice_pairs, indice_pair_num, inverse, subm):
            out.index_add_(0, outputs, (features[inputs] @ weight[:, k].T).to(out.dtype))
        if subm:
            out += features @ weight[:, weight.shape[1] // 2].T
    return _finish(out, features, bias, act_type, act_alpha)


def fused_indice_conv(
    features: Tensor,
    filters: Tensor,
    bias: Tensor,
    indice_pairs: Tensor,
    indice_pair_num: Tensor,
    num_activate_out: int,
    inverse: bool,
    subm: bool,
) -> Tensor:
    """Raises UserError: it is not in the release either."""
    raise _C.UserError("fused_indice_conv is not there: indice_conv takes a bias")


def indice_conv_backward(
    features: Tensor,
    filters: Tensor,
    out_bp: Tensor,
    indice_pairs: Tensor,
    indice_pair_num: Tensor,
    inverse: bool = False,
    subm: bool = False,
    algo: ConvAlgo = ConvAlgo.Native,
    timer: CUDAKernelTimer = CUDAKernelTimer(False),
) -> tuple[Tensor, Tensor]:
    """(gradient of features, gradient of filters) of the gradient `out_bp` [num_activate_out, out]."""
    weight = _weight(features, filters)
    din = _zeros(features, features.shape[0], features.shape[1])
    dweight = torch.zeros_like(weight)
    with _plain(features):
        for k, inputs, outputs in pairs_of(indice_pairs, indice_pair_num, inverse, subm):
            grad = out_bp[outputs]
            din.index_add_(0, inputs, (grad @ weight[:, k]).to(din.dtype))
            dweight[:, k] = grad.T @ features[inputs]
        if subm:
            middle = weight.shape[1] // 2
            din += out_bp @ weight[:, middle]
            dweight[:, middle] = out_bp.T @ features
    return din.to(features.dtype), dweight.reshape(filters.shape)


def implicit_gemm(
    features: Tensor,
    filters: Tensor,
    pair_fwd: Tensor,
    pair_mask_fwd_splits: Sequence[Tensor],
    mask_argsort_fwd_splits: Sequence[Tensor],
    num_activate_out: int,
    masks: Sequence[np.ndarray],
    is_train: bool,
    is_subm: bool,
    timer: CUDAKernelTimer = CUDAKernelTimer(False),
    fp32_accum: bool | None = None,
    bias: Tensor | None = None,
    act_alpha: float = 0.0,
    act_beta: float = 0.0,
    act_type: gemm.Activation = _None_,
    output_scale: float = 1.0,
    scale: Tensor | None = None,
    output_add: Tensor | None = None,
    output_add_scale: float = 0.0,
    output_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor | None, int]:
    """(sums [num_activate_out, out], masks of tiles of rows or None, rows in a tile).

    `pair_fwd` int32 [K, num_activate_out] as get_indice_pairs_implicit_gemm gives it. Masks of tiles are
    there with `is_train`: int32 [splits, tiles, words], the bits that any row of a tile has in its
    sorted mask. `scale` and `output_add` belong to int8, which is not there.
    """
    weight = _weight(features, filters)
    if scale is not None or output_add is not None:
        name = "scale" if output_add is None else "output_add"
        raise PeerAssertionError(f"{name}: int8 is not there: add what is to be added afterwards")
    if tuple(pair_fwd.shape) != (weight.shape[1], num_activate_out):
        raise _C.UserError(
            f"pair_fwd has shape {tuple(pair_fwd.shape)}: give [{weight.shape[1]} offsets, "
            f"{num_activate_out} outputs]"
        )
    out = _through(features, pair_fwd, weight.permute(1, 2, 0))
    out = _finish(out, features, bias, act_type, act_alpha)
    tiles = _tiles(pair_fwd, mask_argsort_fwd_splits, masks) if is_train else None
    return out if output_dtype is None else out.to(output_dtype), tiles, MASK_WIDTH


def implicit_gemm_backward(
    features: Tensor,
    filters: Tensor,
    out_bp: Tensor,
    pair_fwd: Tensor,
    pair_bwd: Tensor,
    pair_mask_fwd_splits: Sequence[Tensor],
    pair_mask_bwd_splits: Sequence[Tensor],
    mask_argsort_fwd_splits: Sequence[Tensor],
    mask_argsort_bwd_splits: Sequence[Tensor],
    mask_output_fwd: Tensor | None,
    masks: Sequence[np.ndarray],
    mask_width: int,
    is_subm: bool,
    timer: CUDAKernelTimer = CUDAKernelTimer(False),
    fp32_accum: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """(gradient of features, gradient of filters) of the gradient `out_bp`."""
    weight = _weight(features, filters)
    if pair_bwd.numel() == 0 and features.shape[0] != 0:
        raise _C.UserError("pair_bwd is empty: make the pairs with is_train = True")
    din = _through(out_bp, pair_bwd, weight.permute(1, 0, 2))
    dweight = torch.zeros_like(weight)
    source = with_zero(features)
    with _plain(features):
        for k in range(weight.shape[1]):
            dweight[:, k] = out_bp.T @ source[pair_fwd[k].long()]
    return din.to(features.dtype), dweight.reshape(filters.shape)


def _weight(features: Tensor, filters: Tensor) -> Tensor:
    """[out, K, in]"""
    if features.is_quantized or filters.is_quantized:
        raise _C.UserError("features or filters are quantized: int8 is not there; dequantize() them")
    if features.dim() != 2 or filters.shape[-1] != features.shape[1]:
        raise PeerAssertionError(
            f"features have shape {tuple(features.shape)} and filters {tuple(filters.shape)}: give "
            "[rows, in] and [out, *kernel, in]"
        )
    return filters.reshape(filters.shape[0], -1, filters.shape[-1])


def _plain(features: Tensor) -> Any:
    return torch.autocast(features.device.type, enabled=False)


def _zeros(features: Tensor, rows: int, channels: int) -> Tensor:
    narrow = features.dtype in (torch.float16, torch.bfloat16)
    dtype = torch.float32 if narrow else features.dtype
    return torch.zeros((rows, channels), dtype=dtype, device=features.device)


def pairs_of(
    pairs: Tensor, numbers: Tensor, inverse: bool, subm: bool
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """(offset, input rows, output rows), without the middle one of a submanifold layer. There the
    offsets behind it have as many as those that they mirror."""
    counts = numbers.tolist()
    middle = len(counts) // 2
    for k, count in enumerate(counts):
        if subm and k >= middle:
            count = 0 if k == middle else counts[len(counts) - 1 - k]
        if count > 0:
            inputs, outputs = pairs[int(inverse), k, :count], pairs[int(not inverse), k, :count]
            yield k, inputs.long(), outputs.long()


def with_zero(rows: Tensor) -> Tensor:
    """A row of zeros at the end, which is where -1 points."""
    return torch.cat([rows, rows.new_zeros((1, rows.shape[1]))])


def _through(rows: Tensor, table: Tensor, weight: Tensor) -> Tensor:
    """Sum over k of rows[table[k]] @ weight[k]; does not wait."""
    out = _zeros(rows, table.shape[1], weight.shape[2])
    source = with_zero(rows)
    with _plain(rows):
        for k in range(weight.shape[0]):
            out += source[table[k].long()] @ weight[k]
    return out


def _tiles(table: Tensor, orders: Sequence[Tensor], filters: Sequence[np.ndarray]) -> Tensor:
    rows = table.shape[1]
    tiles = -(-rows // MASK_WIDTH)
    result = []
    for order, kept in zip(orders, filters):
        met = torch.nn.functional.pad(table[:, order.long()] >= 0, (0, tiles * MASK_WIDTH - rows))
        words = words_of(met.reshape(len(table), tiles, MASK_WIDTH).any(2))
        words = words if len(filters) == 1 else words & int(kept.item())
        result.append(words)
    signed = torch.stack(result)
    return torch.where(signed >= 1 << 31, signed - (1 << 32), signed).to(torch.int32)


def _finish(
    out: Tensor, features: Tensor, bias: Tensor | None, kind: gemm.Activation, alpha: float
) -> Tensor:
    if bias is not None:
        out = out + bias
    if kind is not _None_:
        out = activate(out, kind, alpha)
    return out.to(features.dtype)
