"""Functions of TorchSparse's extension: those of nn.functional, with gradients apart."""

from __future__ import annotations

import torch
from torch import Tensor

from .... import ops
from ..nn.functional.conv.hash import query
from ..nn.functional.count import spcount
from ..nn.functional.devoxelize import spdevoxelize
from ..nn.functional.hash import sphash
from ..nn.functional.query import sphashquery
from ..nn.functional.voxelize import spvoxelize
from ..utils.to_dense import to_dense


def hash_cpu(idx: Tensor) -> Tensor:
    """int64 [N] of int32 [N, 4]."""
    return sphash(idx)


def kernel_hash_cpu(idx: Tensor, kernel_offset: Tensor) -> Tensor:
    """int64 [K, N] of int32 [N, 4], moved by each of int32 [K, 3]."""
    return sphash(idx, kernel_offset)


def hash_query_cpu(hash_query: Tensor, hash_target: Tensor, idx_target: Tensor) -> Tensor:
    """int64 [N]: the number of `idx_target` and one, of the target that is equal; 0: none is."""
    found = sphashquery(hash_query, hash_target)
    if len(hash_target) == 0:
        return found + 1
    return torch.where(found >= 0, idx_target[found.clamp_min(0)] + 1, 0)


def count_cpu(idx: Tensor, s: int) -> Tensor:
    """int32 [s]: how often each number occurs."""
    return spcount(idx, s)


def voxelize_forward_cpu(inputs: Tensor, idx: Tensor, counts: Tensor) -> Tensor:
    """[N, C] to means [M, C]."""
    with torch.no_grad():
        return spvoxelize(inputs, idx, counts)


def voxelize_backward_cpu(top_grad: Tensor, idx: Tensor, counts: Tensor, n: int) -> Tensor:
    """[M, C] to [n, C]."""
    with torch.no_grad():
        return ops.take_rows(top_grad / counts.to(top_grad.dtype).clamp_min(1)[:, None], idx)


def devoxelize_forward_cpu(feat: Tensor, indices: Tensor, weight: Tensor) -> Tensor:
    """[M, C] to weighted sums [N, C] of rows [N, 8]."""
    with torch.no_grad():
        return spdevoxelize(feat, indices, weight)


def devoxelize_backward_cpu(top_grad: Tensor, indices: Tensor, weight: Tensor, n: int) -> Tensor:
    """[N, C] to [n, C]."""
    with torch.enable_grad():
        feats = top_grad.new_zeros((n, top_grad.shape[1])).requires_grad_()
        output = spdevoxelize(feats, indices, weight)
    return torch.autograd.grad(output, feats, top_grad)[0]


def to_dense_forward_cuda(
    feats: Tensor, coords: Tensor, spatial_range: Tensor, outputs: Tensor
) -> None:
    """Into `outputs` [batch, X, Y, Z, C]."""
    with torch.no_grad():
        outputs.copy_(to_dense(feats, coords, spatial_range.tolist()))


def to_dense_backward_cuda(
    top_grad: Tensor, coords: Tensor, spatial_range: Tensor, bottom_grad: Tensor
) -> None:
    """Out of top_grad [batch, X, Y, Z, C]."""
    bottom_grad.copy_(top_grad[tuple(coords.long().unbind(1))])


def convert_transposed_out_in_map(out_in_map: Tensor, out_in_map_t: Tensor) -> None:
    """Into `out_in_map_t`."""
    out_in_map_t.copy_(query.convert_transposed_out_in_map(out_in_map, len(out_in_map_t)))


hash_cuda, kernel_hash_cuda, hash_query_cuda = hash_cpu, kernel_hash_cpu, hash_query_cpu
count_cuda = count_cpu
voxelize_forward_cuda, voxelize_backward_cuda = voxelize_forward_cpu, voxelize_backward_cpu
devoxelize_forward_cuda, devoxelize_backward_cuda = devoxelize_forward_cpu, devoxelize_backward_cpu
