"""flash_attn, xformers.ops and vox2seq as TRELLIS calls them, computed by PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from standing_in import stand_in
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """[..., L, heads, C] each."""
    q, k, v = (rows.transpose(-2, -3) for rows in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(-2, -3)


def in_sequences(
    q: Tensor, k: Tensor, v: Tensor, q_ends: Sequence[int], kv_ends: Sequence[int]
) -> Tensor:
    """[T, heads, C]: sequence i of `q`, before q_ends[i + 1], sees sequence i of `k` and `v` alone."""
    assert q_ends[-1] == len(q) and kv_ends[-1] == len(k) == len(v)
    parts = zip(itertools.pairwise(q_ends), itertools.pairwise(kv_ends), strict=True)
    return torch.cat([attention(q[a:b], k[c:d], v[c:d]) for (a, b), (c, d) in parts])


def _varlen(q: Tensor, k: Tensor, v: Tensor, q_ends: Tensor, kv_ends: Tensor, *longest: int) -> Tensor:
    for ends, length in zip((q_ends, kv_ends), longest, strict=True):
        assert ends.dtype == torch.int32 and int(ends.diff().max()) == length
    return in_sequences(q, k, v, q_ends.tolist(), kv_ends.tolist())


class _BlockDiagonalMask:
    def __init__(self, q_lengths: list[int], kv_lengths: list[int]) -> None:
        self.ends = [list(itertools.accumulate(n, initial=0)) for n in (q_lengths, kv_lengths)]

    @classmethod
    def from_seqlens(cls, q: list[int], kv: list[int] | None = None) -> _BlockDiagonalMask:
        return cls(q, q if kv is None else kv)


def _memory_efficient(q: Tensor, k: Tensor, v: Tensor, mask: _BlockDiagonalMask | None = None) -> Tensor:
    if mask is None:
        return attention(q, k, v)
    return in_sequences(q[0], k[0], v[0], *mask.ends)[None]


def z_order(cells: Tensor) -> Tensor:
    """int [N, 3], not negative, to int64 [N]: bits of the last column lowest."""
    code = torch.zeros_like(cells[:, 0], dtype=torch.int64)
    for bit, axis in itertools.product(range(10), range(3)):
        code |= ((cells[:, axis].long() >> bit) & 1) << (3 * bit + 2 - axis)
    return code


def _encode(cells: Tensor, mode: str, permute: list[int]) -> Tensor:
    assert mode == "z_order", "Hilbert's order is not stood in for"
    return z_order(cells[:, permute])


def install() -> None:
    """Under those names, until what is imported is forgotten."""
    stand_in(
        "flash_attn",
        flash_attn_qkvpacked_func=lambda qkv: attention(*qkv.unbind(-3)),
        flash_attn_varlen_qkvpacked_func=lambda qkv, ends, longest: _varlen(
            *qkv.unbind(1), ends, ends, longest, longest
        ),
        flash_attn_varlen_kvpacked_func=lambda q, kv, *rest: _varlen(q, *kv.unbind(1), *rest),
        flash_attn_varlen_func=_varlen,
    )
    fmha = SimpleNamespace(BlockDiagonalMask=_BlockDiagonalMask)
    stand_in("xformers")
    stand_in("xformers.ops", memory_efficient_attention=_memory_efficient, fmha=fmha)
    stand_in("vox2seq", encode=_encode)
