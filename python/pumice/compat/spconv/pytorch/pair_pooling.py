"""Pooling through tables of pairs, as functions of spconv that custom layers call.

They give what spconv gives: a maximum counts 0 too, and the gradient of a mean is multiplied by the
number of inputs. Layers of this package do neither unless switches in `constants` say so.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .pair_products import pairs_of, with_zero


def indice_maxpool(
    features: Tensor, indice_pairs: Tensor, indice_pair_num: Tensor, num_activate_out: int
) -> Tensor:
    """[num_activate_out, C]: the largest of the inputs that an output meets, and of 0."""
    out = features.new_zeros((num_activate_out, features.shape[1]))
    for _, inputs, outputs in pairs_of(indice_pairs, indice_pair_num, False, False):
        row = outputs[:, None].expand(-1, features.shape[1])
        out.scatter_reduce_(0, row, features[inputs], "amax")
    return out


def indice_maxpool_backward(
    features: Tensor,
    out_features: Tensor,
    out_bp: Tensor,
    indice_pairs: Tensor,
    indice_pair_num: Tensor,
) -> Tensor:
    """[N, C]: every input that equals its output's maximum has all of the output's gradient."""
    din = torch.zeros_like(features)
    for _, inputs, outputs in pairs_of(indice_pairs, indice_pair_num, False, False):
        largest = features[inputs] == out_features[outputs]
        din.index_add_(0, inputs, torch.where(largest, out_bp[outputs], 0))
    return din


def indice_maxpool_implicit_gemm(
    features: Tensor, indice_pairs: Tensor, num_activate_out: int
) -> Tensor:
    """As indice_maxpool, of a table [K, num_activate_out] of input rows; does not wait."""
    out = features.new_zeros((num_activate_out, features.shape[1]))
    source = with_zero(features)
    for rows in indice_pairs.long():
        out = torch.maximum(out, source[rows])
    return out


def indice_maxpool_implicit_gemm_backward(
    features: Tensor, out_features: Tensor, out_bp: Tensor, indice_pairs: Tensor
) -> Tensor:
    """As indice_maxpool_backward, of a table [K, N] of output rows."""
    din = torch.zeros_like(features)
    largest, grad = with_zero(out_features), with_zero(out_bp)
    for rows in indice_pairs.long():
        # Where there is no output, grad is 0 whatever equals what.
        din += torch.where(features == largest[rows], grad[rows], 0)
    return din


def indice_avgpool_implicit_gemm(
    features: Tensor, indice_pairs: Tensor, num_activate_out: int, calc_count: bool
) -> tuple[Tensor, Tensor]:
    """(the mean of the inputs that each output meets [num_activate_out, C], how many they are int32
    [num_activate_out], or an empty tensor without `calc_count`)."""
    wide = torch.promote_types(features.dtype, torch.float32)
    total = features.new_zeros((num_activate_out, features.shape[1]), dtype=wide)
    source = with_zero(features)
    for rows in indice_pairs.long():
        total += source[rows]
    count = (indice_pairs >= 0).sum(0, dtype=torch.int32)
    mean = (total / count.clamp_min(1)[:, None]).to(features.dtype)
    return mean, count if calc_count else torch.Tensor()


def indice_avgpool_implicit_gemm_backward(
    out_bp: Tensor, indice_pairs: Tensor, count_out: Tensor
) -> Tensor:
    """[N, C]: the sum of the gradients of the outputs that each input meets, each times its count."""
    din = out_bp.new_zeros((indice_pairs.shape[1], out_bp.shape[1]))
    grad = with_zero(out_bp * count_out[:, None].to(out_bp.dtype))
    for rows in indice_pairs.long():
        din += grad[rows]
    return din


def maximum_value_int_(ten: Tensor, value: int) -> None:
    """Each number of an integer tensor becomes at least `value`, in place."""
    ten.clamp_min_(value)


def global_pool_rearrange(coords: Tensor, batch_size: int) -> tuple[Tensor, Tensor]:
    """(int32 [batch_size, N]: the rows of each batch item, in order, then whatever; int32 [batch_size]:
    how many they are), of coords [N, 1 + D]."""
    item = coords[:, 0].long()
    own = item == torch.arange(batch_size, device=coords.device)[:, None]
    rows = (~own).to(torch.int8).argsort(dim=1, stable=True)
    return rows.to(torch.int32), own.sum(1, dtype=torch.int32)
