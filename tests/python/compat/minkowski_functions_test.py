"""The functions behind MinkowskiEngine's layers, by features and keys: against its layers, loops and dense
matrices, their gradients against differences."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from conftest import close, random_sites, working_type

from pumice.compat import minkowski as ME
from pumice.compat.minkowski.MinkowskiSparseTensor import _get_coordinate_map_key
from pumice.compat.minkowski.utils.gradcheck import gradcheck

LOCAL = {"Sum": "LOCAL_SUM_POOLING", "Avg": "LOCAL_AVG_POOLING", "Max": "LOCAL_MAX_POOLING"}


def tensor(device: torch.device, rows: int = 33, channels: int = 2, stride: int = 1) -> ME.SparseTensor:
    cells = random_sites(2, 9, rows).to(device)
    cells[:, 1:] = (cells[:, 1:] - 4) * stride
    features = torch.randn(len(cells), channels, dtype=working_type(device)).to(device)
    return ME.SparseTensor(features.requires_grad_(), cells, tensor_stride=stride)


def differs(device: torch.device, function: Any, arguments: tuple[Any, ...]) -> None:
    """Gradients against differences, which need float64."""
    if working_type(device) is torch.float64:
        assert gradcheck(function, arguments)


def same(found: torch.Tensor, y: ME.SparseTensor) -> None:
    close(found.detach(), y.F.detach(), 100)


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("expand", [False, True])
def test_convolution(
    device: torch.device, rows: int, stride: int, cross: bool, transposed: bool, expand: bool
) -> None:
    x = tensor(device, rows, stride=2 if transposed else 1)
    region = ME.RegionType.HYPER_CROSS if cross else ME.RegionType.HYPER_CUBE
    kernel = ME.KernelGenerator(3, stride, region_type=region, expand_coordinates=expand, dimension=2)
    name = "MinkowskiConvolutionTranspose" if transposed else "MinkowskiConvolution"
    layer = getattr(ME, name)(2, 3, kernel_generator=kernel, dimension=2).to(device, x.dtype)
    function = getattr(ME, f"{name}Function")
    y = layer(x)
    shared = (x.F, layer.kernel, kernel, layer.convolution_mode, x.coordinate_map_key)
    new = ME.CoordinateMapKey(3)
    for key in (None, y.coordinate_map_key, new):
        same(function.apply(*shared, key, x.coordinate_manager), y)
    assert new == y.coordinate_map_key
    assert torch.equal(ME.SparseTensor(y.F, coordinate_map_key=new, coordinate_manager=x._manager).C, y.C)
    if rows == 1:
        differs(device, function(), (*shared, y.coordinate_map_key, x.coordinate_manager))


@pytest.mark.parametrize("kind", [*LOCAL, "Transpose"])
@pytest.mark.parametrize("rows", [1, 33])
def test_local_pooling(device: torch.device, kind: str, rows: int) -> None:
    transposed = kind == "Transpose"
    x = tensor(device, rows, stride=2 if transposed else 1)
    layer = getattr(ME, "MinkowskiPoolingTranspose" if transposed else f"Minkowski{kind}Pooling")(3, 2, dimension=2)
    function = ME.MinkowskiLocalPoolingTransposeFunction if transposed else ME.MinkowskiLocalPoolingFunction
    y = layer(x)
    assert transposed or layer.pooling_mode.name == LOCAL[kind]
    shared = (x.F, layer.pooling_mode, layer.kernel_generator, x.coordinate_map_key)
    new = ME.CoordinateMapKey(3)
    for key in (None, y.coordinate_map_key, new):
        same(function.apply(*shared, key, x.coordinate_manager), y)
    assert new == y.coordinate_map_key
    differs(device, function(), (*shared, y.coordinate_map_key, x.coordinate_manager))


@pytest.mark.parametrize("kind", ["SUM", "AVG", "MAX"])
@pytest.mark.parametrize("way", ["DEFAULT", "KERNEL", "PYTORCH_INDEX"])
@pytest.mark.parametrize("field", [False, True])
def test_global_pooling(device: torch.device, kind: str, way: str, field: bool) -> None:
    x: Any = tensor(device)
    if field:
        x = ME.TensorField(x.F, x.C.float())
    mode = ME.PoolingMode[f"GLOBAL_{kind}_POOLING_{way}"]
    function = ME.MinkowskiGlobalPoolingFunction
    new = ME.CoordinateMapKey(3)
    key = x.coordinate_field_map_key if field else x.coordinate_map_key
    found = function.apply(x.F, mode, key, new, x.coordinate_manager)
    reduce = {"SUM": lambda f: f.sum(0), "AVG": lambda f: f.mean(0), "MAX": lambda f: f.amax(0)}[kind]
    expected = torch.stack([reduce(x.F[x.C[:, 0] == item]) for item in (0, 1)])
    close(found.detach(), expected.detach(), 100)
    assert ME.SparseTensor(found, coordinate_map_key=new, coordinate_manager=x._manager).C.tolist() == [
        [0, 0, 0], [1, 0, 0]
    ]
    differs(device, function(), (x.F, mode, key, None, x.coordinate_manager))
    with pytest.raises(AssertionError, match="out_coordinate_map_key"):
        other = ME.SparseTensor(torch.ones(1, 1, device=device), torch.zeros(1, 3, device=device).int(),
                                coordinate_manager=x._manager)
        function.apply(x.F, mode, key, other.coordinate_map_key, x.coordinate_manager)


@pytest.mark.parametrize("rows", [0, 1, 31])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_direct_max_pooling(device: torch.device, rows: int, index: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(rows)
    in_map = torch.randint(0, 5, (rows,), generator=generator).to(device, index)
    out_map = torch.randint(0, 3, (rows,), generator=generator).to(device, index) * 2  # rows 1 and 3 get none
    features = -torch.rand(5, 4, generator=generator, dtype=torch.float64).to(device, working_type(device))
    features.requires_grad_()
    found = ME.MinkowskiDirectMaxPoolingFunction.apply(in_map, out_map, features, 6)
    expected = torch.zeros_like(found)
    for row in range(6):
        here = features[in_map[out_map == row].long()]
        if len(here):
            expected[row] = here.amax(0)
    assert torch.equal(found, expected)
    differs(device, ME.MinkowskiDirectMaxPoolingFunction(), (in_map, out_map, features, 6, True))
    with pytest.raises(AssertionError, match="give as many"):
        ME.MinkowskiDirectMaxPoolingFunction.apply(in_map[:0], torch.zeros(1, dtype=index), features, 6)


@pytest.mark.parametrize("mode", list(ME.BroadcastMode))
def test_broadcast(device: torch.device, mode: ME.BroadcastMode) -> None:
    x = tensor(device)
    items = ME.MinkowskiGlobalAvgPooling()(x).detach()
    items.requires_grad_()
    arguments = (x.F, items.F, mode, x.coordinate_map_key, items.coordinate_map_key, x.coordinate_manager)
    found = ME.MinkowskiBroadcastFunction.apply(*arguments)
    combine = torch.add if mode is ME.BroadcastMode.ELEMENTWISE_ADDITON else torch.mul
    expected = [combine(row, items.F[item]) for row, item in zip(x.F, x.C[:, 0].tolist())]
    close(found.detach(), torch.stack(expected).detach())
    differs(device, ME.MinkowskiBroadcastFunction(), arguments)
    with pytest.raises(AssertionError, match="BroadcastMode"):
        ME.MinkowskiBroadcastFunction.apply(*arguments[:2], "add", *arguments[3:])


@pytest.mark.parametrize("rows", [1, 31])
def test_instance_norm(device: torch.device, rows: int) -> None:
    x = tensor(device, rows)
    new = ME.CoordinateMapKey(3)
    arguments = (x.F, x.coordinate_map_key, new, x.coordinate_manager)
    found = ME.MinkowskiInstanceNormFunction.apply(*arguments)
    expected = torch.zeros_like(found)
    for item in (0, 1):
        here = x.C[:, 0] == item
        part = x.F[here].detach()
        expected[here] = (part - part.mean(0)) / ((part - part.mean(0)).square().mean(0) + 1e-8).sqrt()
    close(found.detach(), expected, 100)
    assert new == x.coordinate_manager.origin()
    if rows > 1:
        differs(device, ME.MinkowskiInstanceNormFunction(), (x.F, x.coordinate_map_key, None, x._manager))


@pytest.mark.parametrize("left", [0, 1, 20, 33])
@pytest.mark.parametrize("type_", [torch.bool, torch.uint8])
def test_pruning(device: torch.device, left: int, type_: torch.dtype) -> None:
    x = tensor(device)
    mask = torch.arange(len(x), device=device) % len(x) < left
    new = ME.CoordinateMapKey(3)
    arguments = (x.F, mask.to(type_), x.coordinate_map_key)
    found = ME.MinkowskiPruningFunction.apply(*arguments, new, x.coordinate_manager)
    assert torch.equal(found, x.F[mask])
    assert torch.equal(x.coordinate_manager.get_coordinates(new), x.C[mask])
    keys = len(x._manager._sites)
    assert torch.equal(ME.MinkowskiPruningFunction.apply(*arguments, new, x.coordinate_manager), found)
    assert len(x._manager._sites) == keys, "a key that has sites needs no others"
    differs(device, ME.MinkowskiPruningFunction(), (*arguments, new, x.coordinate_manager))


def test_union(device: torch.device) -> None:
    x = tensor(device)
    cells = random_sites(2, 9, 20, seed=5).to(device)
    features = torch.randn(len(cells), 2, dtype=x.dtype, device=device).requires_grad_()
    y = ME.SparseTensor(features, cells, coordinate_manager=x.coordinate_manager)
    keys, new = [x.coordinate_map_key, y.coordinate_map_key], ME.CoordinateMapKey(3)
    apply = ME.MinkowskiUnionFunction.apply
    for _ in range(2):  # a new key, and one that has the sites
        found = apply(keys, new, x.coordinate_manager, x.F, y.F)
        sums: dict[tuple[int, ...], torch.Tensor] = {}
        for part in (x, y):
            for cell, row in zip(part.C.tolist(), part.F.detach()):
                sums[tuple(cell)] = sums.get(tuple(cell), 0) + row
        assert x._manager.get_coordinates(new).tolist() == [list(cell) for cell in sums]
        close(found.detach(), torch.stack(list(sums.values())))
    differs(device, ME.MinkowskiUnionFunction(), (keys, new, x.coordinate_manager, x.F, y.F))
    with pytest.raises(AssertionError, match="as many of both"):
        apply(keys, new, x.coordinate_manager, x.F)


@pytest.mark.parametrize("points", [0, 1, 31])
@pytest.mark.parametrize("stride", [1, 2])
def test_interpolation(device: torch.device, points: int, stride: int) -> None:
    x = tensor(device, stride=stride)
    field = torch.rand(points, 3, generator=torch.Generator().manual_seed(points), dtype=torch.float64)
    field[:, 0] = torch.arange(points) % 3  # the last item has no sites
    field[:, 1:] = field[:, 1:] * 10 * stride - 5 * stride
    field = field.to(device)
    arguments = (x.F, field, x.coordinate_map_key, x.coordinate_manager)
    features, rows, of_point, weights = ME.MinkowskiInterpolationFunction.apply(*arguments)
    row_at = {tuple(cell): row for row, cell in enumerate(x.C.tolist())}
    expected = torch.zeros(points, 2, dtype=torch.float64)
    pairs = {}
    for number, (item, *place) in enumerate(field.tolist()):
        for corner in itertools.product((0, 1), repeat=2):
            cell = [stride * (int(p // stride) + c) for p, c in zip(place, corner)]
            row = row_at.get((int(item), *cell))
            if row is not None:
                weight = 1.0
                for p, c in zip(place, cell):
                    weight *= 1 - abs(p - c) / stride
                pairs[row, number] = weight
                expected[number] += weight * x.F[row].detach().double().cpu()
    close(features.detach().double().cpu(), expected, 1 if x.dtype is torch.float64 else 2**30)
    assert rows.dtype is of_point.dtype is torch.int32
    found = dict(zip(zip(rows.tolist(), of_point.tolist()), weights.tolist()))
    assert found.keys() == pairs.keys()
    assert all(abs(found[pair] - pairs[pair]) < 1e-12 for pair in pairs)
    if points == 31:
        differs(device, ME.MinkowskiInterpolationFunction(), arguments)
    whole = ME.MinkowskiInterpolation(return_kernel_map=True, return_weights=True)(x, field)
    assert torch.equal(whole[0], features) and torch.equal(whole[1][0], rows) and torch.equal(whole[2], weights)
    assert len(ME.MinkowskiInterpolation(return_weights=True)(x, field)) == 2
    assert torch.equal(ME.MinkowskiInterpolation()(x, field), features)


@pytest.mark.parametrize("count", [0, 1, 33])
@pytest.mark.parametrize("index", [torch.int32, torch.int64, torch.float32])
def test_sparse_matrix_products(device: torch.device, count: int, index: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(count)
    rows = torch.randint(0, 4, (count,), generator=generator).to(device)
    cols = torch.randint(0, 7, (count,), generator=generator).to(device)  # some places occur twice
    values = torch.randn(count, generator=generator, dtype=torch.float64).to(device)
    mat = torch.randn(7, 3, generator=generator, dtype=torch.float64).to(device).requires_grad_()
    matrix, ones = (torch.zeros(5, 7, dtype=torch.float64, device=device) for _ in range(2))
    for row, col, value in zip(rows.tolist(), cols.tolist(), values.tolist()):
        matrix[row, col] += value
        ones[row, col] += 1
    places = rows.to(index), cols.to(index)
    size = torch.Size([5, 7])
    for found in (
        ME.spmm(*places, values, size, mat), ME.spmm(*places, values, [5, 7], mat, is_sorted=True),
        ME.MinkowskiSPMMFunction.apply(*places, values, size, mat),
    ):
        close(found.detach(), (matrix @ mat).detach())
    mean = ME.MinkowskiSPMMAverageFunction.apply(*places, size, mat)
    close(mean.detach(), (ones @ mat / ones.sum(1, keepdim=True).clamp(min=1)).detach())
    assert gradcheck(ME.MinkowskiSPMMFunction(), (*places, values, size, mat))
    assert gradcheck(ME.MinkowskiSPMMAverageFunction(), (*places, size, mat))


def test_wrong_sparse_matrices_are_refused() -> None:
    one, mat = torch.zeros(1).int(), torch.ones(2, 2)
    for wrong in (
        lambda: ME.spmm(one, one[:0], mat[0, :1], [2, 2], mat),
        lambda: ME.spmm(one, one, mat[0], [2, 2], mat),
        lambda: ME.spmm(one, one, mat[0, :1].double(), [2, 2], mat),
    ):
        with pytest.raises(AssertionError, match="give as many"):
            wrong()
    with pytest.raises(RuntimeError, match="size"):
        ME.spmm(one + 5, one, mat[0, :1], [2, 2], mat)


def test_functions_are_functions_and_need_a_manager(device: torch.device) -> None:
    x = tensor(device)
    names = [name for name in dir(ME) if name.endswith("Function")]
    assert len(names) == 13
    for name in names:
        assert issubclass(getattr(ME, name), torch.autograd.Function)
    with pytest.raises(AssertionError, match="coordinate_manager = None"):
        ME.MinkowskiInstanceNormFunction.apply(x.F, x.coordinate_map_key)


def test_a_layer_of_ones_own_in_the_manner_of_minkowski_engine(device: torch.device) -> None:
    key_of = _get_coordinate_map_key
    x = tensor(device)
    kernel = ME.KernelGenerator(2, 2, dimension=2)
    weight = torch.randn(4, 2, 3, dtype=x.dtype).to(device).requires_grad_()
    key = key_of(x)
    features = ME.MinkowskiConvolutionFunction.apply(
        x.F, weight, kernel, None, x.coordinate_map_key, key, x._manager
    )
    y = ME.SparseTensor(features, coordinate_map_key=key, coordinate_manager=x.coordinate_manager)
    assert y.tensor_stride == [2, 2] and len(y) == len(ME.MinkowskiMaxPooling(2, 2, dimension=2)(x))
    y.F.sum().backward()
    assert weight.grad is not None and x.F.grad is not None
    given = key_of(x, x.C + 1)
    assert torch.equal(x._manager.get_coordinates(given), x.C + 1)
    assert key_of(x, y) == y.coordinate_map_key and key_of(x, key) is key
    assert not key_of(x, y, expand_coordinates=True).is_key_set()



@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", [ME.MinkowskiInstanceNorm, ME.MinkowskiStableInstanceNorm])
def test_instance_norms_of_one_row_an_item_in_half(device: torch.device, norm: Any, dtype: torch.dtype) -> None:
    """Its variance is 0, and so are their eps in float16: 0 times infinity."""
    cells = torch.tensor([[0, 1, 2, 3], [1, 1, 2, 3], [1, 4, 4, 4]], dtype=torch.int32)
    features = torch.randn(3, 8).to(device, dtype).requires_grad_()
    out = norm(8).to(device)(ME.SparseTensor(features, cells.to(device))).F
    exact = norm(8)(ME.SparseTensor(features.detach().cpu().float(), cells)).F
    assert out.dtype == dtype
    torch.testing.assert_close(out.cpu().float(), exact, rtol=1e-2, atol=1e-2)
    out.float().square().sum().backward()
    assert features.grad is not None and features.grad.isfinite().all()
