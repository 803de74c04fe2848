"""Rows of which only some are in use: operators, layers and losses give what they give of these rows alone, to the bit
in eager calls, with NaN in all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import random_tensor, working_type
from torch import Tensor
from torch.testing import assert_close

import pumice
from pumice import UserError, losses, nn, ops
from pumice.ops import counted

SIZES = [(0, 4), (2, 2), (2, 3), (31, 32), (33, 90), (700, 1500)]  # rows in use, and room
CHANNELS = 5


def padded(rows: Tensor, room: int) -> Tensor:
    """The rows, and behind them NaN, or a number that no label is."""
    worst = float("nan") if rows.is_floating_point() else 2**40
    tail = torch.full((room - len(rows), *rows.shape[1:]), worst, device=rows.device)
    return torch.cat([rows.detach(), tail.to(rows.dtype)])


def expect_same(made: Tensor, alone: Tensor) -> None:
    assert made.dtype == alone.dtype
    assert_close(made, alone, rtol=0, atol=0, equal_nan=True)


def expect_same_in_room(
    run: Callable[..., Any], used: int, room: int, given: list[Tensor], of_rows: list[bool]
) -> None:
    """`run(count, *tensors)` gives tensors, those of `of_rows` a row for each of the operands'. It runs on the rows
    alone and in room for more of them; the results and gradients of both are the same."""
    made = []
    for rows in (used, room):
        tensors = [padded(t, rows) if len(t) == used and used > 0 else t.clone() for t in given]
        if used == 0:
            tensors = [padded(t, rows) if t.shape[0] == 0 else t.clone() for t in given]
        tensors = [t.requires_grad_() if t.is_floating_point() else t for t in tensors]
        count = torch.tensor([used], device=given[0].device)
        outputs = run(count, *tensors)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        grads = [
            padded(torch.linspace(1, 2, o[:used].numel(), dtype=o.dtype, device=o.device).reshape(o[:used].shape), rows)
            if with_rows else torch.full_like(o, 0.75)
            for o, with_rows in zip(outputs, of_rows)
        ]
        wanted = [t for t in tensors if t.requires_grad]
        found = torch.autograd.grad(outputs, wanted, grads)
        cut = [o[:used] if with_rows else o for o, with_rows in zip(outputs, of_rows)]
        made.append([*cut, *(g[:used] if len(t) == rows else g for g, t in zip(found, wanted))])
    for alone, in_room in zip(*made):
        expect_same(in_room, alone)


def numbers(*shape: int, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    return torch.randn(shape, dtype=dtype or working_type(device), device=device)


@pytest.mark.parametrize("used, room", SIZES)
def test_sums_over_rows(device: torch.device, used: int, room: int) -> None:
    x = numbers(used, CHANNELS, device=device)
    expect_same_in_room(lambda n, x: counted.sum_rows(x, n), used, room, [x], [False])
    assert_close(counted.sum_rows(x, None), x.sum(0))


@pytest.mark.parametrize("used, room", SIZES)
def test_linear(device: torch.device, used: int, room: int) -> None:
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True)
    try:
        given = [numbers(used, CHANNELS, device=device), numbers(7, CHANNELS, device=device), numbers(7, device=device)]
        run = lambda n, x, w, b: counted.linear(x, w, b, n)  # noqa: E731
        expect_same_in_room(run, used, room, given, [True])
        expected = torch.nn.functional.linear(*given)
        assert_close(counted.linear(*given, torch.tensor([used], device=device)), expected)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("used, room", SIZES)
def test_layer_norm(device: torch.device, used: int, room: int) -> None:
    given = [numbers(used, CHANNELS, device=device), numbers(CHANNELS, device=device), numbers(CHANNELS, device=device)]
    if used == CHANNELS:
        pytest.skip("rows and channels are told apart by their number")
    run = lambda n, x, w, b: counted.layer_norm(x, w, b, 1e-5, n)  # noqa: E731
    expect_same_in_room(run, used, room, given, [True])
    expected = torch.nn.functional.layer_norm(given[0], (CHANNELS,), *given[1:], 1e-5)
    assert_close(counted.layer_norm(*given, 1e-5, torch.tensor([used], device=device)), expected)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("used, room", SIZES)
def test_batch_norm(device: torch.device, used: int, room: int, training: bool) -> None:
    given = [numbers(used, CHANNELS, device=device), numbers(CHANNELS, device=device), numbers(CHANNELS, device=device)]
    running = []

    def run(n: Tensor, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        kept = [torch.zeros_like(w), torch.ones_like(w), torch.tensor(3, device=device)]
        running.append(kept)
        return ops.batch_norm(x, w, b, kept[0], kept[1], training, relu=True, batches=kept[2], count=n)

    expect_same_in_room(run, used, room, given, [True])
    for alone, in_room in zip(*running):
        expect_same(in_room, alone)
    assert running[0][2] == (4 if training and used > 0 else 3)


def test_one_row_of_many_has_no_variance() -> None:
    with pytest.raises(ValueError, match="1 row"):
        ops.batch_norm(torch.randn(4, 3), None, None, count=torch.tensor([1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_clear_tail(device: torch.device, dtype: torch.dtype) -> None:
    x = (torch.randn(9, 3, device=device) * 9).to(dtype)
    made = ops.clear_tail(x, torch.tensor([4], device=device))
    assert made.dtype == dtype and torch.equal(made[:4], x[:4]) and not made[4:].any()
    assert ops.clear_tail(x, None) is x
    sites = random_tensor().coords
    rows = torch.randn(len(sites), 2)
    assert ops.clear_tail(rows, sites) is rows


def test_gradients_of_cleared_rows_are_zero(device: torch.device) -> None:
    x = padded(torch.randn(4, 3, device=device), 9).requires_grad_()
    grad = torch.full((9, 3), float("nan"), device=device)
    grad[:4] = 2.0
    (found,) = torch.autograd.grad(ops.clear_tail(x, torch.tensor([4], device=device)), x, grad)
    assert torch.equal(found[:4], grad[:4]) and not found[4:].any()


def test_derivatives_of_derivatives() -> None:
    count = torch.tensor([3])
    x, w, b = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 4), (2, 4), (2,)))
    row = torch.randn(4, dtype=torch.float64, requires_grad=True)
    clear = lambda t: ops.clear_tail(t, count)  # noqa: E731  (the rows behind hold what memory held)
    check = torch.autograd.gradgradcheck
    assert check(lambda *t: clear(counted.linear(*t, count)), (x, w, b))
    assert check(lambda x, w, b: clear(counted.layer_norm(x, w, b, 1e-3, count)), (x, row, row.detach().clone().requires_grad_()))
    assert check(lambda x: counted.sum_rows(x * x, count), (x,))
    labels = torch.tensor([0, 3, -1, 9, 9])
    assert check(lambda x: losses.cross_entropy(x, labels, label_smoothing=0.1, count=count), (x,))
    with pytest.raises(UserError, match="second derivatives"):
        y = ops.batch_norm(x, row, None, count=count)
        torch.autograd.grad(y[:3].square().sum(), x, create_graph=True)


def test_in_a_graph() -> None:
    """As torch.compile traces them: functions of PyTorch, around cleared rows."""
    count = torch.tensor([3])
    x = padded(torch.randn(3, 4), 6)
    w, b = torch.randn(2, 4), torch.randn(2)
    labels = torch.tensor([0, 3, -1, 9, 9, 9])

    def step(x: Tensor, count: Tensor) -> tuple[Tensor, ...]:
        norm = counted.layer_norm(x, None, None, 1e-5, count)
        return (
            ops.clear_tail(x, count),
            counted.linear(x, w, b, count)[:3],
            norm[:3],
            counted.sum_rows(x, count),
            losses.cross_entropy(x, labels, count=count),
        )

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    for made, expected in zip(compiled(x, count), step(x, count)):
        assert_close(made, expected)
    with pytest.raises(Exception, match="inside a graph"):
        torch.compile(lambda x: ops.batch_norm(x, None, None, count=count), backend="eager", fullgraph=True)(x)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("used, room", SIZES)
def test_cross_entropy(device: torch.device, used: int, room: int, weighted: bool, smoothing: float) -> None:
    scores = numbers(used, 7, device=device) * 3
    labels = torch.randint(-1, 7, (used,), device=device)
    weight = torch.rand(7, device=device, dtype=scores.dtype) + 0.5 if weighted else None
    options = {"weight": weight, "label_smoothing": smoothing}
    run = lambda n, s, y: losses.cross_entropy(s, y, count=n, **options)  # noqa: E731
    expect_same_in_room(run, used, room, [scores, labels], [False])
    leaf = scores.clone().requires_grad_()
    ours = losses.cross_entropy(leaf, labels, **options)
    plain = torch.nn.functional.cross_entropy(leaf, labels, ignore_index=-1, **options)
    assert_close(ours, plain, equal_nan=True)
    if used > 0:
        assert_close(torch.autograd.grad(ours * 3, leaf), torch.autograd.grad(plain * 3, leaf))
    in_room = padded(scores, room).requires_grad_()
    count = torch.tensor([used], device=device)
    loss = losses.cross_entropy(in_room, padded(labels, room), count=count, **options)
    (grad,) = torch.autograd.grad(loss, in_room)
    assert not grad[used:].any(), "rows past the count get a gradient of 0"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_cross_entropy_of_halves(device: torch.device, dtype: torch.dtype) -> None:
    scores = torch.randn(40, 7, device=device).to(dtype).requires_grad_()
    labels = torch.randint(0, 7, (40,), device=device, dtype=torch.uint8)
    loss = losses.cross_entropy(scores, labels, ignore_index=255)
    assert loss.dtype == torch.float32 and loss.shape == ()
    plain = torch.nn.functional.cross_entropy(scores.float(), labels.long())
    assert_close(loss, plain)
    (grad,) = torch.autograd.grad(loss, scores)
    (expected,) = torch.autograd.grad(plain, scores)
    assert_close(grad, expected, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("used, room", SIZES[1:])
def test_lovasz(device: torch.device, used: int, room: int) -> None:
    scores = torch.randn(used, 5, device=device)
    truth = torch.randint(-1, 4, (used,), device=device)
    run = lambda n, s, y: losses.lovasz_softmax(s, y, count=n)  # noqa: E731
    expect_same_in_room(run, used, room, [scores, truth], [False])
    count = torch.tensor([used], device=device)
    assert_close(losses.lovasz_softmax(scores, truth, count=count), losses.lovasz_softmax(scores, truth))
    in_room = padded(scores, room).requires_grad_()
    (grad,) = torch.autograd.grad(run(count, in_room, padded(truth, room)), in_room)
    assert not grad[used:].any()


def test_layers_of_sites_of_known_number_are_pytorchs() -> None:
    x = random_tensor(channels=4, dtype=torch.float32)
    for layer, plain in ((nn.Linear(4, 3), torch.nn.functional.linear),):
        assert torch.equal(layer(x).features, plain(x.features, layer.weight, layer.bias))
    norm = nn.LayerNorm(4)
    assert torch.equal(norm(x).features, torch.nn.functional.layer_norm(x.features, (4,), norm.weight, norm.bias))
    assert not counted.is_counted(x.coords) and not counted.is_counted(ops.submanifold_map(x.coords, nn.SubMConv3d(4, 4, 3).window))


def refused(call: Callable[[], object], *words: str) -> None:
    with pytest.raises(UserError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), caught.value


def test_mistakes() -> None:
    x, labels = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, -1, 4])
    refused(lambda: ops.clear_tail(x, 3), "count is an int", "Coordinates")
    refused(lambda: ops.clear_tail(x, torch.tensor([3.0])), "count", "int64")
    refused(lambda: ops.clear_tail(x, torch.tensor([3, 4])), "count has shape [2]")
    refused(lambda: ops.clear_tail(x, torch.tensor([7])), "7 rows needed", "capacity 6")
    refused(lambda: ops.batch_norm(x, None, None, count=random_tensor().coords), "have 6 rows")
    refused(lambda: ops.clear_tail(x, random_tensor().coords), "6 rows")
    refused(lambda: losses.cross_entropy(x, labels, weight=torch.ones(4).long()), "weight is torch.int64")
    refused(lambda: losses.cross_entropy(x, labels), "labels[5] = 4", "0 to 3")
    refused(lambda: losses.cross_entropy(x, labels.float()), "labels is torch.float32")
    refused(lambda: losses.cross_entropy(x[:, 0], labels), "scores have shape (6,)")
    refused(lambda: losses.cross_entropy(x, labels, label_smoothing=2), "label_smoothing = 2")
    refused(lambda: losses.cross_entropy(x, labels, weight=torch.ones(3)), "weight has shape [3]")
    refused(lambda: losses.cross_entropy(pumice.SparseTensor(torch.zeros(1, 4).int(), x[:1]), labels), "scores.features")
