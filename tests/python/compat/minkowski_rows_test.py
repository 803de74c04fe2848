"""MinkowskiEngine's interface: rows stay where the caller put them, and new sites come first come, first row."""

from __future__ import annotations

import itertools

import pytest
import torch
from conftest import random_sites

from pumice.compat import minkowski as ME

Mode = ME.SparseTensorQuantizationMode
SIZES = [0, 1, 31, 33, 400]


def first_come(cells: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(cells))


def cells_of(count: int, dimension: int = 3, seed: int = 0) -> torch.Tensor:
    """Distinct, negative ones too, in no order."""
    cells = random_sites(dimension, 9, count, seed=seed)
    cells[:, 1:] -= 5
    return cells


def rows(x: ME.SparseTensor) -> list[tuple[int, ...]]:
    return [tuple(cell) for cell in x.C.tolist()]


@pytest.mark.parametrize("mode", list(Mode)[:4] + [Mode.MAX_POOL])
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_distinct_coordinates_keep_their_rows_and_their_leaf(
    device: torch.device, dimension: int, count: int, mode: Mode
) -> None:
    cells = cells_of(count, dimension).to(device)
    features = torch.randn(len(cells), 2, device=device, requires_grad=True)
    x = ME.SparseTensor(features, cells, quantization_mode=mode)
    assert x.F is features and torch.equal(x.C, cells)
    assert torch.equal(x.inverse_mapping, torch.arange(len(cells), device=device))
    assert torch.equal(x.unique_index, x.inverse_mapping)
    for _ in range(2):  # which needs a leaf
        x.F.sum().backward()
    assert bool((features.grad == 2).all())


def test_the_rows_of_three_cells(device: torch.device) -> None:
    cells = torch.tensor([[0, 0, 0, 5], [0, 1, 0, 0], [0, 0, 2, 0]], dtype=torch.int32, device=device)
    x = ME.SparseTensor(torch.arange(3.0, device=device)[:, None], cells)
    assert x.F[:, 0].tolist() == [0, 1, 2] and torch.equal(x.C, cells)


@pytest.mark.parametrize("mode", list(Mode)[:3] + [Mode.MAX_POOL])
@pytest.mark.parametrize("count", [2, 31, 33, 300])
@pytest.mark.parametrize("made", ["tensor", "field"])
def test_repeated_coordinates_come_at_their_first_row(
    device: torch.device, made: str, count: int, mode: Mode
) -> None:
    generator = torch.Generator().manual_seed(count)
    points = torch.rand(count, 3, generator=generator) * 5 - 2.5
    points[:, 0] = torch.randint(0, 2, (count,), generator=generator)
    points[-1] = points[0]
    features = torch.randn(count, 2, generator=generator).double()
    floors = torch.floor(points).int()
    if made == "tensor":
        x = ME.SparseTensor(features.to(device), floors.to(device), quantization_mode=mode)
        row_of = x.inverse_mapping
    else:
        field = ME.TensorField(features.to(device), points.to(device), quantization_mode=mode)
        x = field.sparse()
        row_of = field.inverse_mapping(x.coordinate_map_key)
        again = field.sparse(coordinate_map_key=x.coordinate_map_key)
        assert torch.equal(again.F, x.F)
    expected = first_come([tuple(cell) for cell in floors.tolist()])
    assert rows(x) == expected and len(expected) < count
    assert [expected[row] for row in row_of.tolist()] == [tuple(cell) for cell in floors.tolist()]
    reduce = {
        Mode.RANDOM_SUBSAMPLE: lambda f: f[0], Mode.UNWEIGHTED_AVERAGE: lambda f: f.mean(0),
        Mode.UNWEIGHTED_SUM: lambda f: f.sum(0), Mode.MAX_POOL: lambda f: f.amax(0),
    }[mode]
    wanted = [reduce(features[(floors == torch.tensor(cell)).all(1)]) for cell in expected]
    torch.testing.assert_close(x.F.cpu(), torch.stack(wanted), rtol=0, atol=1e-12)


def test_a_field_of_distinct_cells_keeps_its_leaf(device: torch.device) -> None:
    cells = cells_of(40).to(device)
    features = torch.randn(len(cells), 2, device=device, requires_grad=True)
    field = ME.TensorField(features, cells + 0.25 * (torch.arange(4, device=device) > 0))
    x = field.sparse()
    assert x.F is features and torch.equal(x.C, cells) and torch.equal(x.slice(field).F, features)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [2, 3, "mixed"])
def test_strided_sites_come_as_their_first_site_does(
    device: torch.device, dimension: int, count: int, steps: object
) -> None:
    steps = [2, 1, 3, 5][:dimension] if steps == "mixed" else [steps] * dimension
    cells = cells_of(count, dimension).to(device)
    x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells)
    coarse = [
        (item, *(v // s * s for v, s in zip(cell, steps))) for item, *cell in cells.tolist()
    ]
    for size in (steps, 3):
        layer = ME.MinkowskiConvolution(1, 1, size, steps, dimension=dimension).to(device)
        for again in (x, ME.SparseTensor(x.F, cells)):
            assert rows(layer(again)) == first_come(coarse)
    pooled = ME.MinkowskiSumPooling(2, steps, dimension=dimension)(ME.SparseTensor(x.F, cells))
    assert rows(pooled) == first_come(coarse) and pooled.tensor_stride == steps
    further = ME.MinkowskiMaxPooling(2, 2, dimension=dimension)(pooled)
    twice = [
        (item, *(v // (2 * s) * 2 * s for v, s in zip(cell, steps))) for item, *cell in coarse
    ]
    assert rows(further) == first_come(twice)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("size, steps", [([2, 2], [2, 2]), ([3, 3], [2, 2]), ([3, 2], [1, 3]), ([1, 5], [4, 1])])
def test_generated_sites_come_as_their_first_site_does(
    device: torch.device, count: int, size: list[int], steps: list[int]
) -> None:
    cells = cells_of(count, 2).to(device)
    given = cells * cells.new_tensor([1, *steps])
    x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), given, tensor_stride=steps)
    ranges = [[i - (k // 2 if k % 2 else 0) for i in range(k)] for k in size]
    expected = first_come([
        (item, a + da, b + db)
        for item, a, b in given.tolist() for db, da in itertools.product(ranges[1], ranges[0])
    ])
    layers = (
        ME.MinkowskiGenerativeConvolutionTranspose(1, 1, size, steps, dimension=2),
        ME.MinkowskiConvolutionTranspose(1, 1, size, steps, dimension=2),
        ME.MinkowskiPoolingTranspose(size, steps, dimension=2),
    )
    for layer in layers:
        y = layer.to(device)(ME.SparseTensor(x.F, given, tensor_stride=steps))
        assert rows(y) == expected and y.tensor_stride == [1, 1]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("size, stride", [(3, 1), (2, 1), (3, 2), (5, 3)])
def test_expanded_sites_come_as_their_first_site_does(
    device: torch.device, count: int, size: int, stride: int
) -> None:
    cells = cells_of(count, 2).to(device)
    reach = [i - (size // 2 if size % 2 else 0) for i in range(size)]
    near = [
        (item, a + da, b + db)
        for item, a, b in cells.tolist() for db, da in itertools.product(reach, reach)
        if (a + da) % stride == 0 and (b + db) % stride == 0
    ]
    layer = ME.MinkowskiConvolution(1, 1, size, stride, expand_coordinates=True, dimension=2).to(device)
    x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells)
    assert rows(layer(x)) == first_come(near)


def test_layers_of_one_kernel_generate_one_set_of_sites(device: torch.device) -> None:
    cells = cells_of(50).to(device)
    for options in ({}, {"expand_coordinates": True}):
        generative = ME.MinkowskiConvolution if options else ME.MinkowskiGenerativeConvolutionTranspose
        layers = [generative(1, 1, 3, 2, dimension=3, **options).to(device) for _ in range(2)]
        x = ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells * cells.new_tensor([1, 2, 2, 2]),
                            tensor_stride=2)
        keys = [layer(x).coordinate_map_key for layer in (*layers, *layers)]
        assert all(key == keys[0] for key in keys) and len(x.coordinate_manager._sites) == 2
        other = generative(1, 1, 2, 2, dimension=3, **options).to(device)
        assert other(x).coordinate_map_key != keys[0]


def test_a_cross_reaches_its_centre_first(device: torch.device) -> None:
    kernel = ME.KernelGenerator(
        3, region_type=ME.RegionType.HYPER_CROSS, expand_coordinates=True, dimension=2
    )
    layer = ME.MinkowskiConvolution(1, 1, kernel_generator=kernel, dimension=2).to(device)
    cells = torch.tensor([[0, 4, 4], [0, 3, 4]], dtype=torch.int32, device=device)
    y = layer(ME.SparseTensor(torch.ones(2, 1, device=device), cells))
    expected = [(4, 4), (5, 4), (3, 4), (4, 5), (4, 3), (2, 4), (3, 5), (3, 3)]
    assert rows(y) == [(0, *cell) for cell in expected]


@pytest.mark.parametrize("left, right", [(0, 0), (0, 31), (33, 0), (1, 1), (200, 150)])
@pytest.mark.parametrize("union", [False, True])
def test_sums_append_what_the_right_adds(
    device: torch.device, left: int, right: int, union: bool
) -> None:
    a_cells, b_cells = cells_of(left, seed=1).to(device), cells_of(right, seed=2).to(device)
    a = ME.SparseTensor(torch.randn(len(a_cells), 2, device=device, requires_grad=True), a_cells)
    b = ME.SparseTensor(
        torch.randn(len(b_cells), 2, device=device, requires_grad=True), b_cells,
        coordinate_manager=a.coordinate_manager,
    )
    both = ME.MinkowskiUnion()(a, b) if union else a + b
    expected = first_come(rows(a) + rows(b))
    assert rows(both) == expected
    at = {cell: row for row, cell in enumerate(expected)}
    wanted = torch.zeros_like(both.F)
    for x in (a, b):
        wanted = wanted.index_add(0, torch.tensor([at[c] for c in rows(x)], dtype=torch.int64, device=device), x.F)
    torch.testing.assert_close(both.F, wanted, rtol=0, atol=0)
    weights = torch.randn_like(wanted)
    mine = torch.autograd.grad((both.F * weights).sum(), (a.F, b.F))
    theirs = torch.autograd.grad((wanted * weights).sum(), (a.F, b.F))
    assert all(torch.equal(m, t) for m, t in zip(mine, theirs))


def test_a_union_of_three_appends_each(device: torch.device) -> None:
    manager = ME.CoordinateManager(D=2)
    parts = [cells_of(40, 2, seed).to(device) for seed in range(3)]
    tensors = [
        ME.SparseTensor(torch.ones(len(p), 1, device=device), p, coordinate_manager=manager) for p in parts
    ]
    union = ME.MinkowskiUnion()(*tensors)
    assert rows(union) == first_come([cell for x in tensors for cell in rows(x)])
    key = ME.CoordinateMapKey(3)
    maps = manager.union_map([x.coordinate_map_key for x in tensors], key)
    assert torch.equal(manager.get_coordinates(key), union.C)
    for x, (mine, there) in zip(tensors, maps):
        assert torch.equal(x.C[mine], union.C[there])


@pytest.mark.parametrize("count", SIZES)
def test_given_coordinates_keep_their_rows(device: torch.device, count: int) -> None:
    cells, given = cells_of(100).to(device), cells_of(count, seed=5).to(device)
    x = ME.SparseTensor(torch.randn(len(cells), 2, device=device), cells)
    for layer in (
        ME.MinkowskiConvolution(2, 3, 3, dimension=3),
        ME.MinkowskiChannelwiseConvolution(2, 3, dimension=3),
        ME.MinkowskiSumPooling(3, dimension=3),
    ):
        repeated = torch.cat([given, given.flip(0)])
        assert torch.equal(layer.to(device)(x, given).C, given)
        assert torch.equal(layer(x, repeated).C, given)


def test_pruning_keeps_the_order(device: torch.device) -> None:
    cells = cells_of(200).to(device)
    x = ME.SparseTensor(torch.arange(len(cells), device=device)[:, None].float(), cells)
    kept = cells[:, 2] >= 0
    y = ME.MinkowskiPruning()(x, kept)
    assert torch.equal(y.C, cells[kept]) and torch.equal(y.F, x.F[kept])
    assert rows(ME.MinkowskiMaxPooling(2, 2, dimension=3)(y)) == first_come(
        [(b, *(v // 2 * 2 for v in cell)) for b, *cell in rows(y)]
    )


def test_splatted_sites_come_as_their_first_point_does(device: torch.device) -> None:
    points = torch.tensor([[0, 2.5, 1.5], [0, 0.5, 0.5], [0, 1.5, 1.5]], device=device)
    x = ME.TensorField(torch.ones(3, 1, device=device), points).splat()
    corners = itertools.product((0, 1), (0, 1))
    steps = list(corners)
    near = [(0, int(a) + da, int(b) + db) for _, a, b in points.tolist() for da, db in steps]
    assert rows(x) == first_come(near)


@pytest.mark.parametrize("kind", ["strided", "generative", "wider"])
def test_compiled_layers_make_rows_in_the_same_order(device: torch.device, kind: str) -> None:
    layer = {
        "strided": lambda: ME.MinkowskiConvolution(2, 3, 2, 2, dimension=3),
        "generative": lambda: ME.MinkowskiGenerativeConvolutionTranspose(2, 3, 2, 2, dimension=3),
        "wider": lambda: ME.MinkowskiConvolution(2, 3, 3, expand_coordinates=True, dimension=3),
    }[kind]().to(device)
    cells = cells_of(60).to(device) * torch.tensor([1, 2, 2, 2], device=device, dtype=torch.int32)
    features = torch.randn(len(cells), 2, device=device)
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", dynamic=True)
    found, expected = (
        run(ME.SparseTensor(features, cells, tensor_stride=2)) for run in (compiled, layer)
    )
    torch.testing.assert_close(found.F, expected.F, rtol=1e-5, atol=1e-5)
    assert torch.equal(found.C, expected.C) and found.tensor_stride == expected.tensor_stride
