"""TRELLIS's attention on sparse tensors, unmodified, beside one softmax under a mask."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from attention_stand_in import z_order
from conftest import close, working_type
from torch import Tensor
from trellis_code import BACKENDS, batch_of_cells, randomise, trellis

HEADS, CHANNELS = 2, 12


def masked(q: Tensor, k: Tensor, v: Tensor, sees: Tensor) -> Tensor:
    """[N, C] and [M, C] with `sees` [N, M] to [N, C]."""
    q, k, v = (rows.reshape(len(rows), HEADS, -1).transpose(0, 1) for rows in (q, k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    shares = scores.masked_fill(~sees, -math.inf).softmax(-1)
    return (shares @ v).transpose(0, 1).reshape(q.shape[1], -1)


def same_window(cells: Tensor, window: int, shift: int) -> Tensor:
    """[N, N]"""
    windows = torch.cat([cells[:, :1], (cells[:, 1:] + shift) // window], 1)
    return (windows[:, None] == windows[None]).all(-1)


def near_in_order(cells: Tensor, codes: Tensor, window: int, shift: int) -> Tensor:
    """[N, N]: the rows of each batch item in the order of `codes`, in a circle, are cut to parts of
    equal length; each part sees the `window` rows around its middle."""
    sees = torch.zeros(len(cells), len(cells), dtype=torch.bool)
    for item in cells[:, 0].unique():
        rows = (cells[:, 0] == item).nonzero()[:, 0].cpu()
        rows = rows[codes[rows].argsort()]
        count = len(rows)
        parts = -(-count // window)
        if parts == 1:
            sees[rows[:, None], rows] = True
            continue
        for part in range(parts):
            begin, end = (math.floor(i * (count / parts) + shift) for i in (part, part + 1))
            first = math.floor((part + 0.5) * (count / parts) + shift - 0.5 * window)
            askers = rows[torch.arange(begin, end) % count]
            sees[askers[:, None], rows[torch.arange(first, first + window) % count]] = True
    return sees.to(cells.device)


CASES: dict[str, dict[str, Any]] = {
    "full": {"attn_mode": "full"},
    "full, normed": {"attn_mode": "full", "qk_rms_norm": True},
    "windowed": {"attn_mode": "windowed", "window_size": 4, "shift_window": 0},
    "shifted windows": {"attn_mode": "windowed", "window_size": 4, "shift_window": 2},
    "serialized": {"attn_mode": "serialized", "window_size": 16},
    "shifted sequence": {"attn_mode": "serialized", "window_size": 16, "shift_sequence": 8},
    "one window an item": {"attn_mode": "serialized", "window_size": 1000},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("library", ["flash_attn", "xformers"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_self_attention(device: torch.device, backend: str, library: str, name: str) -> None:
    type_, given = working_type(device), dict(CASES[name])
    cells = batch_of_cells(device, 9, 120)
    rows = torch.randn(len(cells), CHANNELS, dtype=type_, device=device, requires_grad=True)
    with trellis(backend, library) as code:
        sp = code.sparse
        if given["attn_mode"] == "serialized":
            given = {"serialize_mode": sp.SerializeMode.Z_ORDER, "shift_sequence": 0, **given}
            given["shift_window"] = (0, 0, 0)
        layer = sp.SparseMultiHeadAttention(CHANNELS, HEADS, **given).to(device, type_)
        randomise(layer)
        y = layer(sp.SparseTensor(rows, cells))
    assert torch.equal(y.coords, cells)
    q, k, v = layer.to_qkv(rows).chunk(3, 1)
    if "normed" in name:
        q, k = (normed(part, norm.gamma) for part, norm in ((q, layer.q_rms_norm), (k, layer.k_rms_norm)))
    if name.startswith("full") or name == "one window an item":
        sees = cells[:, :1] == cells[:, 0]
    elif "window" in name:
        sees = same_window(cells, given["window_size"], given["shift_window"])
    else:
        codes = z_order(cells[:, 1:]).cpu()
        sees = near_in_order(cells, codes, given["window_size"], given["shift_sequence"])
    assert name.startswith(("full", "one")) or not sees.equal(cells[:, :1] == cells[:, 0])
    expected = layer.to_out(masked(q, k, v, sees))
    if "normed" in name:  # in float32, however wide features are
        torch.testing.assert_close(y.feats, expected, rtol=1e-4, atol=1e-6)
    else:
        check(y.feats, expected, rows, layer)


def normed(rows: Tensor, gamma: Tensor) -> Tensor:
    heads = rows.float().reshape(len(rows), HEADS, -1)
    heads = heads / heads.norm(dim=-1, keepdim=True) * gamma * math.sqrt(heads.shape[-1])
    return heads.reshape(rows.shape).to(rows.dtype)


@pytest.mark.parametrize("sparse_context", [False, True])
@pytest.mark.parametrize("library", ["flash_attn", "xformers"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_cross_attention(
    device: torch.device, backend: str, library: str, sparse_context: bool
) -> None:
    type_ = working_type(device)
    cells = batch_of_cells(device, 9, 80)
    others = batch_of_cells(device, 5, 30)
    rows = torch.randn(len(cells), CHANNELS, dtype=type_, device=device, requires_grad=True)
    with trellis(backend, library) as code:
        sp = code.sparse
        layer = sp.SparseMultiHeadAttention(CHANNELS, HEADS, 8, type="cross").to(device, type_)
        randomise(layer)
        if sparse_context:
            items = others[:, 0]
            seen = torch.randn(len(others), 8, dtype=type_, device=device)
            context = sp.SparseTensor(seen, others)
        else:
            context = torch.randn(2, 7, 8, dtype=type_, device=device)
            items, seen = torch.arange(2, device=device).repeat_interleave(7), context.flatten(0, 1)
        y = layer(sp.SparseTensor(rows, cells), context)
    k, v = layer.to_kv(seen).chunk(2, 1)
    expected = masked(layer.to_q(rows), k, v, cells[:, :1] == items)
    check(y.feats, layer.to_out(expected), rows, layer)


def check(found: Tensor, expected: Tensor, rows: Tensor, layer: torch.nn.Module) -> None:
    close(found, expected, 1000)
    wanted = [rows, *layer.parameters()]
    weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype, device=found.device)
    weights = weights.reshape(found.shape)
    mine, theirs = (torch.autograd.grad((y * weights).sum(), wanted) for y in (found, expected))
    for left, right in zip(mine, theirs, strict=True):
        close(left, right, 1000)
