"""TRELLIS's sparse modules, unmodified, beside the same code on dense convolutions of PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import close, working_type
from torch import Tensor
from trellis_code import (
    BACKENDS,
    Code,
    batch_of_cells,
    compared,
    let_forward_see_spconv,
    randomise,
    trellis,
)

EXTENT = 9

# What is given to SparseConv3d(4, 6, ...).
CONVOLUTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "spconv": {
        "submanifold": {"kernel_size": 3},
        "wide": {"kernel_size": 5, "bias": False},
        "dilated": {"kernel_size": 3, "dilation": 2},
        "pointwise": {"kernel_size": 1},
        "onto what it reaches": {"kernel_size": 3, "padding": 1},
        "halving": {"kernel_size": 2, "stride": 2, "padding": 0},
        "halving, overlapping": {"kernel_size": 3, "stride": 2, "padding": 1},
        "of three": {"kernel_size": 3, "stride": 3, "padding": 0},
    },
    "torchsparse": {
        "submanifold": {"kernel_size": 3},
        "wide": {"kernel_size": 5, "bias": False},
        "pointwise": {"kernel_size": 1},
        "halving": {"kernel_size": 2, "stride": 2},
        "halving, overlapping": {"kernel_size": 3, "stride": 2},
        "of three": {"kernel_size": 3, "stride": 3},
    },
}
STRIDED = [(b, name) for b, cases in CONVOLUTIONS.items() for name in cases if "stride" in cases[name]]


def rows_by_site(y: Any) -> tuple[Tensor, Tensor]:
    """Sites in order, and their features."""
    sites, place = torch.unique(y.coords, dim=0, return_inverse=True)
    assert len(sites) == len(y.coords)
    return sites, y.feats[place.argsort()]


def convolve(
    code: Code, device: torch.device, items: int, make: Callable[[Any], list[torch.nn.Module]]
) -> list[Tensor]:
    """Sites, features, and gradients of layers one after another."""
    layers = torch.nn.Sequential(*make(code.sparse)).to(device, working_type(device))
    randomise(layers)
    if items > 1 and code.sparse.BACKEND == "spconv":
        let_forward_see_spconv(code.sparse)
    torch.manual_seed(5)
    cells = batch_of_cells(device, EXTENT, 150, items)
    feats = torch.randn(len(cells), 4, dtype=working_type(device)).to(device).requires_grad_()
    y = layers(code.sparse.SparseTensor(feats, cells))
    assert y.shape == (items, y.feats.shape[1])  # and that items are in one piece is asserted inside
    sites, rows = rows_by_site(y)
    weights = torch.linspace(-1, 1, rows.numel(), dtype=rows.dtype, device=device).reshape(rows.shape)
    return [sites, rows, *torch.autograd.grad((rows * weights).sum(), [feats, *layers.parameters()])]


def check(mine: list[Tensor], theirs: list[Tensor]) -> None:
    assert torch.equal(mine[0], theirs[0])
    for left, right in zip(mine[1:], theirs[1:], strict=True):
        assert left.shape == right.shape and bool(right.any())
        close(left, right, sums=1000)


@pytest.mark.parametrize("items", [1, 3])
@pytest.mark.parametrize("backend, name", [(b, name) for b, cases in CONVOLUTIONS.items() for name in cases])
def test_convolutions(device: torch.device, backend: str, name: str, items: int) -> None:
    given = CONVOLUTIONS[backend][name]
    make = lambda sp: [sp.SparseConv3d(4, 6, **given)]  # noqa: E731
    check(*compared(backend, lambda code: convolve(code, device, items, make)))


class Anew(torch.nn.Module):
    """The same sites in a tensor of their own, as TRELLIS's `detach` and `to` have it too."""

    def forward(self, x: Any) -> Any:
        return x.replace(x.feats, x.coords.clone())


@pytest.mark.parametrize("backend, name", STRIDED)
def test_convolutions_are_undone(device: torch.device, backend: str, name: str) -> None:
    given = CONVOLUTIONS[backend][name]
    size, stride = given["kernel_size"], given["stride"]

    def make(sp: Any) -> list[torch.nn.Module]:
        return [
            sp.SparseConv3d(4, 6, **given, indice_key="down"),
            sp.SparseConv3d(6, 6, 3, indice_key="coarse"),
            Anew(),
            sp.SparseSiLU(),
            sp.SparseConv3d(6, 6, 3, indice_key="coarse"),
            sp.SparseInverseConv3d(6, 5, size, stride, indice_key="down"),
            sp.SparseConv3d(5, 3, 3),
        ]

    mine, theirs = compared(backend, lambda code: convolve(code, device, 3, make))
    check(mine, theirs)
    assert torch.equal(mine[0], torch.unique(batch_of_cells(device, EXTENT, 150, 3), dim=0))


@pytest.mark.parametrize("algorithm", ["native", "implicit_gemm", "auto"])
def test_algorithms_are_taken(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    monkeypatch.setenv("SPCONV_ALGO", algorithm)
    with trellis("spconv") as code:
        layer = code.sparse.SparseConv3d(4, 6, 3)
        spconv = importlib.import_module("spconv.pytorch")
        wanted = spconv.ConvAlgo.MaskImplicitGemm if algorithm == "implicit_gemm" else spconv.ConvAlgo.Native
        assert layer.conv.algo is wanted
        layer(code.sparse.SparseTensor(torch.ones(1, 4), torch.zeros(1, 4, dtype=torch.int32)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors(device: torch.device, backend: str) -> None:
    cells = batch_of_cells(device, EXTENT, 100, 3)
    rows, others = (torch.randn(len(cells), 4, device=device) for _ in range(2))
    of_items = torch.randn(3, 4, device=device)
    spread = of_items[cells[:, 0].long()]
    with trellis(backend) as code:
        sp = code.sparse
        x, y = sp.SparseTensor(rows, cells), sp.SparseTensor(feats=others, coords=cells)
        assert x.shape == (3, 4) and x.dim() == 2 and x.dtype == rows.dtype and x.device == rows.device
        for found, expected in (
            (x + y, rows + others), (x - 2, rows - 2), (3 - x, 3 - rows), (x * of_items, rows * spread),
            (2 * x, 2 * rows), (x / y, rows / others), (1 / y, 1 / others), (-x, -rows),
            (sp.sparse_batch_op(x, of_items, torch.sub), rows - spread),
            (sp.sparse_cat([x, y], dim=1), torch.cat([rows, others], 1)), (x.half(), rows.half()),
            (x.reshape(2, 2), rows.reshape(-1, 2, 2)), (x.type(torch.float64), rows.double()),
            (x.reshape(2, 2).unbind(1)[1], rows[:, 2:]), (x.detach(), rows), (x.cpu().to(device), rows),
        ):  # fmt: skip
            assert torch.equal(found.feats, expected) and torch.equal(found.coords, cells)
            assert found.shape == (3, *expected.shape[1:]) and found.dtype == expected.dtype
        picked = x[torch.tensor([2, 0])]
        wanted = torch.cat([rows[cells[:, 0] == 2], rows[cells[:, 0] == 0]])
        assert torch.equal(picked.feats, wanted) and picked.shape == (2, 4)
        joined = sp.sparse_cat([x, y])
        assert joined.shape == (6, 4) and torch.equal(joined[4].feats, others[cells[:, 0] == 1])
        full = sp.SparseTensor.full([0, 0, 1, 1, 2, 2], (2, 3), 0.5, device=device)
        assert full.shape == (2, 3) and full.coords.shape == (24, 4)
        grid = x.dense()
        channels_last = grid if backend == "torchsparse" else grid.movedim(1, -1)
        assert channels_last.shape == (3, *[EXTENT] * 3, 4)
        assert torch.equal(channels_last[tuple(cells.long().unbind(1))], rows)
        assert grid.abs().sum().item() == pytest.approx(rows.abs().sum().item(), rel=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_spatial_layers(device: torch.device, backend: str) -> None:
    cells = batch_of_cells(device, EXTENT, 100)
    rows = torch.randn(len(cells), 4, dtype=working_type(device), device=device, requires_grad=True)
    parents = torch.cat([cells[:, :1], cells[:, 1:] // 2], 1)
    coarse, row_of, counts = torch.unique(parents, dim=0, return_inverse=True, return_counts=True)
    sums = torch.zeros(len(coarse), 4, dtype=rows.dtype, device=device).index_add(0, row_of, rows)
    with trellis(backend) as code:
        sp = code.sparse
        x = sp.SparseTensor(rows, cells)
        down = sp.SparseDownsample(2)(x)
        sites, means = rows_by_site(down)
        # `scatter_reduce` of TRELLIS counts a zero to each mean.
        assert torch.equal(sites, coarse)
        close(means, sums / (counts + 1)[:, None], 10)
        up = sp.SparseUpsample(2)(sp.SparseConv3d(4, 4, 1).to(device, rows.dtype)(down))
        assert torch.equal(up.coords, cells) and up.feats.shape == rows.shape
        fine = sp.SparseSubdivide()(x)
        assert torch.equal(fine.feats, rows.repeat_interleave(8, 0))
        assert torch.equal(fine.coords[:, 1:] // 2, cells[:, 1:].repeat_interleave(8, 0))
        assert len(torch.unique(fine.coords, dim=0)) == 8 * len(cells)
        (up.feats.sum() + fine.feats.sum()).backward()
    assert rows.grad is not None and bool(rows.grad.all())


@pytest.mark.parametrize("backend", BACKENDS)
def test_layers_row_for_row_and_norms(device: torch.device, backend: str) -> None:
    cells = batch_of_cells(device, EXTENT, 100)
    cells = torch.cat([cells[cells[:, 0] == item][:30] for item in range(2)])
    rows = torch.randn(60, 8, device=device)
    items = rows.reshape(2, 30, 8).transpose(1, 2)  # [B, C, N], as TRELLIS hands them to norms
    F = torch.nn.functional  # noqa: N806
    with trellis(backend) as code:
        sp = code.sparse
        x = sp.SparseTensor(rows, cells)
        linear = sp.SparseLinear(8, 5).to(device)
        groups = F.group_norm(items, 4).transpose(1, 2).reshape(60, 8)
        over_rows = F.layer_norm(items, [30]).transpose(1, 2).reshape(60, 8)
        for layer, expected in (
            (linear, F.linear(rows, linear.weight, linear.bias)),
            (sp.SparseReLU(), rows.relu()), (sp.SparseSiLU(), F.silu(rows)), (sp.SparseGELU(), F.gelu(rows)),
            (sp.SparseActivation(torch.nn.Tanh()), rows.tanh()),
            (sp.SparseGroupNorm(4, 8), groups), (sp.SparseGroupNorm32(4, 8), groups),
            (sp.SparseLayerNorm(30), over_rows), (sp.SparseLayerNorm32(30), over_rows),
        ):  # fmt: skip
            found = layer.to(device)(x)
            torch.testing.assert_close(found.feats, expected)
            assert torch.equal(found.coords, cells)
        half = sp.SparseGroupNorm32(4, 8).to(device)(x.half())
        assert half.dtype == torch.float16
        torch.testing.assert_close(half.feats.float(), groups, rtol=1e-2, atol=1e-2)
