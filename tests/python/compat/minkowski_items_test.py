"""Batch items without sites, and what else MinkowskiEngine's tensors give of each item and from each format."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from conftest import close, random_sites, working_type

import pumice
from pumice.compat import minkowski as ME


def gap(device: torch.device) -> ME.SparseTensor:
    """Items 0 and 2 of 3."""
    cells = torch.tensor([[2, 0], [0, 0], [0, 1], [2, 2], [0, 2]], dtype=torch.int32, device=device)
    return ME.SparseTensor(torch.arange(5.0, device=device)[:, None], cells)


def test_items_without_rows_are_kept(device: torch.device) -> None:
    x = gap(device)
    assert [len(part) for part in x.decomposed_coordinates] == [3, 0, 2]
    assert [part[:, 0].tolist() for part in x.decomposed_features] == [[1, 2, 4], [], [0, 3]]
    assert [part.tolist() for part in x.decomposition_permutations] == [[1, 2, 4], [], [0, 3]]
    coordinates, features = x.decomposed_coordinates_and_features
    for item in range(3):
        assert torch.equal(coordinates[item], x.coordinates_at(item))
        assert torch.equal(features[item], x.features_at(item))
    kept = ME.MinkowskiPruning()(x, x.C[:, 0] == 0)  # the last item has lost its rows
    assert [len(part) for part in kept.decomposed_features] == [3, 0, 0]


def test_items_are_counted_from_the_end_too_and_not_past_it(device: torch.device) -> None:
    cells = torch.tensor([[2, 0], [0, 0], [0, 1]], dtype=torch.int32, device=device)
    x = ME.SparseTensor(torch.arange(3.0, device=device)[:, None], cells)
    assert x.features_at(-1).tolist() == [[0]] and x.coordinates_at(-3).tolist() == [[0], [1]]
    assert [len(part) for part in x.coordinates_and_features_at(1)] == [0, 0]
    for ask in (x.features_at, x.coordinates_at, x.coordinates_and_features_at):
        with pytest.raises(IndexError):
            ask(3)


def test_a_field_keeps_items_without_points(device: torch.device) -> None:
    points = torch.tensor([[2, 0.5], [0, 0.5], [0, 1.5]], device=device)
    field = ME.TensorField(torch.arange(3.0, device=device)[:, None], points)
    assert [part[:, 0].tolist() for part in field.decomposed_features] == [[1, 2], [], [0]]


@pytest.mark.parametrize("rows", [0, 1, 33])
def test_batches_of_any_size_are_taken_apart(device: torch.device, rows: int) -> None:
    cells = random_sites(3, 9, rows).to(device)
    x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells)
    items = int(cells[:, 0].max()) + 1 if len(cells) else 0
    assert [len(p) for p in x.decomposed_features] == [int((cells[:, 0] == i).sum()) for i in range(items)]


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("kind", ["Sum", "Avg", "Max", ""])
def test_global_pooling_of_a_field(device: torch.device, kind: str, made: bool) -> None:
    points = torch.rand(40, 4, device=device) * 4 - 2
    points[:, 0] = torch.arange(40, device=device) % 2 * 2  # items 0 and 2 of 3
    features = torch.randn(40, 2, dtype=working_type(device)).to(device).requires_grad_()
    field = ME.TensorField(features, points)
    if made:
        field.sparse()
    y = getattr(ME, f"MinkowskiGlobal{kind}Pooling")()(field)
    reduce = {"Sum": lambda f: f.sum(0), "Max": lambda f: f.amax(0)}.get(kind, lambda f: f.mean(0))
    parts = [reduce(features[points[:, 0] == item]) for item in (0, 2)]
    expected = torch.stack([parts[0], torch.zeros_like(parts[0]), parts[1]])
    assert y.C.tolist() == [[item, 0, 0, 0] for item in range(3)] and isinstance(y, ME.SparseTensor)
    close(y.F, expected, 40)
    weights = torch.randn_like(expected)
    mine = torch.autograd.grad((y.F * weights).sum(), features)[0]
    close(mine, torch.autograd.grad((expected * weights).sum(), features)[0], 40)
    spread = ME.MinkowskiBroadcastConcatenation()(field, y)
    close(spread.F, torch.cat([features, expected[points[:, 0].long()]], 1), 40)


def test_tensors_of_more_items_pool_in_one_manager(device: torch.device) -> None:
    manager = ME.CoordinateManager(D=1)
    for items in (1, 3, 2):
        cells = torch.tensor([[i, 5] for i in range(items)], dtype=torch.int32, device=device)
        x = ME.SparseTensor(torch.ones(items, 1, device=device), cells, coordinate_manager=manager)
        assert ME.MinkowskiGlobalSumPooling()(x).C.tolist() == [[i, 0] for i in range(items)]


@pytest.mark.parametrize("points", [torch.float32, torch.float64])
def test_interpolation_where_an_item_has_no_sites_is_0(device: torch.device, points: torch.dtype) -> None:
    cell = torch.tensor([[1, 0, 2]], dtype=torch.int32, device=device)
    x = ME.SparseTensor(torch.full((1, 1), 3.0, device=device, requires_grad=True), cell)
    there = [[0, 0, 2], [1, 0, 2], [1, 0.5, 2], [2, 0, 2], [7, 0.25, 2.5], [1, 9, 9], [-1, 0, 2]]
    query = torch.tensor(there, dtype=points, device=device)
    found = ME.MinkowskiInterpolation()(x, query)
    assert found[:, 0].tolist() == [0, 3, 1.5, 0, 0, 0, 0] and query.tolist() == there
    assert found.dtype == torch.float32
    found.sum().backward()
    assert x.F.grad.item() == 1.5
    nothing = ME.SparseTensor(torch.ones(0, 2, device=device), cell[:0])
    assert nothing.features_at_coordinates(query).tolist() == [[0, 0]] * len(there)


@pytest.mark.parametrize("format", ["BCXXX", "BXXXC", "BXCXX", None])
def test_dense_formats(device: torch.device, format: str | None) -> None:
    axis = (format or "BC").index("C")
    shape = [2, 4, 5, 3]
    shape.insert(axis, 6)
    given = torch.rand(shape, device=device, requires_grad=True)
    empty = (1, *(0 for _ in shape[2:]))
    cells = [c for c in itertools.product(range(2), range(4), range(5), range(3)) if c != empty]
    masked = given.movedim(axis, -1).clone()
    masked[empty] = 0
    x = ME.to_sparse(masked.movedim(-1, axis), format=format)
    assert [tuple(cell) for cell in x.C.tolist()] == cells
    for row in (0, 7, len(cells) - 1):
        assert torch.equal(x.F[row], given.movedim(axis, -1)[cells[row]])
    x.F.sum().backward()
    assert given.grad.sum() == x.F.numel()


@pytest.mark.parametrize("format", ["BCXX", "CBXXX", "BCCXX", "BXXXX", "BCXXY", "BBXXC"])
def test_formats_that_are_none(format: str) -> None:
    with pytest.raises(AssertionError, match="one letter for each of at least 3 axes"):
        ME.to_sparse(torch.rand(2, 3, 4, 4, 4), format=format)


@pytest.mark.parametrize("columns", [(), (1,)])
@pytest.mark.parametrize("numpy", [False, True])
def test_labels_of_one_column(numpy: bool, columns: tuple[int, ...]) -> None:
    points = np.array([[0.5, 0], [3, 3], [0.25, 0], [1, 1], [3.5, 3]])
    labels = np.array([4, 1, 5, 2, 1], dtype=np.int32).reshape(5, *columns)
    if not numpy:
        points, labels = torch.from_numpy(points), torch.from_numpy(labels)
    cells, features, merged = ME.utils.sparse_quantize(
        points, features=points, labels=labels, ignore_label=-100, quantization_size=1
    )
    assert cells.tolist() == [[0, 0], [3, 3], [1, 1]] and features.tolist() == [[0.5, 0], [3, 3], [1, 1]]
    assert merged.tolist() == [-100, 1, 2] and isinstance(merged, type(points))


def test_labels_of_two_columns_are_refused() -> None:
    with pytest.raises(pumice.UserError, match=r"shape \(5, 2\): give one for each of 5 points"):
        ME.utils.sparse_quantize(np.zeros((5, 3)), labels=np.zeros((5, 2), np.int32))


def test_peers_assertions_are_caught_as_such(device: torch.device) -> None:
    """As MinkowskiEngine's examples catch them."""
    a, b = gap(device), gap(device)
    with pytest.raises(AssertionError, match="different coordinate managers"):
        a + b
    with pytest.raises(AssertionError, match="5 features and 4 coordinates"):
        ME.SparseTensor(a.F, a.C[:4])
    with pytest.raises(AssertionError, match=r"shape \(5,\)"):
        ME.SparseTensor(a.F[:, 0], a.C)
