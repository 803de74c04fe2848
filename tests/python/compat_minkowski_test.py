"""MinkowskiEngine's interface: against dense convolution of PyTorch, in MinkowskiEngine's layouts."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as dense
from conftest import agree, at_sites, close, random_sites, working_type
from programs import check_refusal, run_unmodified

import pumice
from pumice.compat import minkowski as ME
from pumice.convert import LAYOUTS
from pumice.convert.parity import dense_reference

EXTENT = 8
SHIFT = 4  # so that half of the coordinates are negative
CONV = {1: dense.conv1d, 2: dense.conv2d, 3: dense.conv3d}
CONV_TRANSPOSED = {1: dense.conv_transpose1d, 2: dense.conv_transpose2d, 3: dense.conv_transpose3d}
Mode = ME.SparseTensorQuantizationMode


def tensor(device: torch.device, dimension: int = 3, channels: int = 3, count: int = 200) -> ME.SparseTensor:
    cells = random_sites(dimension, EXTENT, count).to(device)
    cells[:, 1:] -= SHIFT
    features = torch.randn(len(cells), channels, dtype=working_type(device)).to(device)
    return ME.SparseTensor(features.requires_grad_(), cells)


def grid(x: ME.SparseTensor, extent: int = EXTENT) -> torch.Tensor:
    """[B, C, ...] from cell -SHIFT / stride on."""
    cells = x.C.long()
    cells[:, 1:] += SHIFT
    cells[:, 1:] //= x.tensor_stride[0]
    full = x.F.new_zeros((2, *[extent] * x.D, x.F.shape[1]))
    return full.index_put(tuple(cells.unbind(1)), x.F).movedim(-1, 1)


def places(y: ME.SparseTensor) -> torch.Tensor:
    cells = y.C.clone()
    cells[:, 1:] += SHIFT
    cells[:, 1:] //= y.tensor_stride[0]
    return cells


def dense_weight(layer: torch.nn.Module) -> torch.Tensor:
    """[out, in, ...] of a kernel whose first axis runs fastest."""
    size = layer.kernel_generator.kernel_size
    channels = (layer.in_channels, layer.out_channels)
    turned = layer.kernel.reshape(*reversed(size), *channels)
    axes = len(size)
    return turned.permute(axes + 1, axes, *range(axes - 1, -1, -1))


def compare(layer: torch.nn.Module, x: ME.SparseTensor, y: torch.Tensor, expected: torch.Tensor) -> None:
    agree(y, expected, (x.F, *layer.parameters()), 100)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5, "mixed"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution(device: torch.device, dimension: int, size: object, stride: int) -> None:
    size = [2, 3, 1][:dimension] if size == "mixed" else size
    x = tensor(device, dimension)
    layer = ME.MinkowskiConvolution(3, 5, size, stride, bias=True, dimension=dimension)
    layer.to(device, working_type(device))
    y = layer(x)
    assert y.tensor_stride == [stride] * dimension and layer.bias.shape == (1, 5)
    if stride == 1:
        assert y.coordinate_map_key == x.coordinate_map_key
    else:
        cells = x.C.clone()
        cells[:, 1:] = torch.div(cells[:, 1:], 2, rounding_mode="floor") * 2
        assert {tuple(c) for c in y.C.tolist()} == {tuple(c) for c in cells.tolist()}
    # Odd axes are centred, even ones begin at their output.
    pads = [
        p for k in reversed(layer.kernel_generator.kernel_size)
        for p in ((k // 2, k // 2) if k % 2 else (0, k - 1))
    ]
    expected = CONV[dimension](dense.pad(grid(x), pads), dense_weight(layer), layer.bias[0], stride=stride)
    compare(layer, x, y.F, at_sites(expected, places(y)))
    layer.eval()
    with torch.no_grad():
        close(layer(x).F, y.F.detach(), 100)


def test_four_dimensions(device: torch.device) -> None:
    x = tensor(device, 4, count=300)
    layer = ME.MinkowskiConvolution(3, 2, [3, 2, 1, 3], dimension=4).to(device, working_type(device))
    y = layer(x)
    for item in range(2):
        cells = grid(x)[item].movedim(0, -1).detach().cpu().double()
        found = dense_reference(
            LAYOUTS["minkowski"], layer.kernel.detach().cpu().double(), (3, 2, 1, 3), cells, False, (1, 0, 0, 1)
        )
        rows = y.C[:, 0] == item
        at = places(y)[rows][:, 1:].long().cpu()
        close(y.F[rows].detach().cpu(), found[tuple(at.T)].to(y.dtype), 100)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("size, output_padding", [(2, 0), (3, 1)])
def test_transposed_goes_to_the_sites_there_are(
    device: torch.device, dimension: int, size: int, output_padding: int
) -> None:
    x = tensor(device, dimension)
    type_ = working_type(device)
    down = ME.MinkowskiConvolution(3, 4, 2, 2, dimension=dimension).to(device, type_)
    coarse = down(x)
    inner = coarse._with(coarse.F.detach().requires_grad_())
    up = ME.MinkowskiConvolutionTranspose(4, 2, size, 2, bias=True, dimension=dimension).to(device, type_)
    y = up(inner)
    assert y.coordinate_map_key == x.coordinate_map_key
    opened = CONV_TRANSPOSED[dimension](
        grid(inner, EXTENT // 2), dense_weight(up).transpose(0, 1), up.bias[0], stride=2,
        padding=size // 2 if size % 2 else 0, output_padding=output_padding,
    )
    compare(up, inner, y.F, at_sites(opened, places(y)))
    grow = ME.MinkowskiGenerativeConvolutionTranspose(4, 2, size, 2, bias=True, dimension=dimension)
    grow.to(device, type_).load_state_dict(up.state_dict())
    grown = grow(inner)
    assert grown.coordinate_map_key != x.coordinate_map_key and grown.tensor_stride == [1] * dimension
    rows = {tuple(cell): row for row, cell in enumerate(grown.C.tolist())}
    close(grown.F[[rows[tuple(cell)] for cell in y.C.tolist()]], y.F, 50)


def test_generative_reaches_729_sites_from_64(device: torch.device) -> None:
    cells = torch.cartesian_prod(torch.zeros(1, dtype=torch.int32), *[torch.arange(0, 8, 2).int()] * 3)
    x = ME.SparseTensor(torch.ones(64, 1, device=device), cells.to(device), tensor_stride=2)
    y = ME.MinkowskiGenerativeConvolutionTranspose(1, 1, 3, 2, dimension=3).to(device)(x)
    assert len(y) == 729
    assert y.C[:, 1:].amin() == -1 and y.C[:, 1:].amax() == 7


def test_hyper_cross(device: torch.device) -> None:
    x = tensor(device)
    kernel = ME.KernelGenerator([3, 5, 1], region_type=ME.RegionType.HYPER_CROSS, dimension=3)
    layer = ME.MinkowskiConvolution(3, 4, kernel_generator=kernel, dimension=3).to(device, working_type(device))
    assert layer.kernel.shape == (7, 3, 4)
    steps = [(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, 2, 0), (0, -2, 0), (0, -1, 0)]
    around = dense.pad(grid(x), [2] * 6)
    expected = 0
    for matrix, step in zip(layer.kernel, steps):
        part = around[(..., *(slice(2 + s, 2 + s + EXTENT) for s in step))]
        expected = expected + torch.einsum("bcxyz,co->boxyz", part, matrix)
    compare(layer, x, layer(x).F, at_sites(expected, places(x)))
    copy.deepcopy(layer)(x)


def test_channelwise(device: torch.device) -> None:
    x = tensor(device)
    layer = ME.MinkowskiChannelwiseConvolution(3, 3, bias=True, dimension=3).to(device, working_type(device))
    weight = layer.kernel.reshape(3, 3, 3, 3).permute(3, 2, 1, 0)[:, None]
    expected = dense.conv3d(grid(x), weight, layer.bias[0], padding=1, groups=3)
    compare(layer, x, layer(x).F, at_sites(expected, places(x)))


def test_onto_given_coordinates(device: torch.device) -> None:
    x = tensor(device)
    layer = ME.MinkowskiConvolution(3, 4, 3, dimension=3).to(device, working_type(device))
    given = random_sites(3, EXTENT, 40, seed=9).to(device)
    given[:, 1:] -= SHIFT
    for coordinates in (given, ME.SparseTensor(x.F[:0].new_zeros(len(given), 1), given,
                                               coordinate_manager=x.coordinate_manager)):
        y = layer(x, coordinates)
        assert len(y) == len(given)
        expected = dense.conv3d(grid(x), dense_weight(layer), padding=1)
        compare(layer, x, y.F, at_sites(expected, places(y)))
    wide = ME.MinkowskiConvolution(3, 4, 3, expand_coordinates=True, dimension=3).to(device, working_type(device))
    assert {tuple(c) for c in x.C.tolist()} < {tuple(c) for c in wide(x).C.tolist()}


def test_two_kernels_lead_to_one_key(device: torch.device) -> None:
    """As the two branches of a residual block need it."""
    x = tensor(device)
    type_ = working_type(device)
    a = ME.MinkowskiConvolution(3, 4, 3, 2, dimension=3).to(device, type_)(x)
    layer = ME.MinkowskiConvolution(3, 4, 1, 2, dimension=3).to(device, type_)
    b = layer(x)
    assert layer.kernel.shape == (1, 3, 4) and a.coordinate_map_key == b.coordinate_map_key
    close((a + b).F, a.F + b.F)
    expected = dense.conv3d(grid(x), dense_weight(layer), stride=2)
    compare(layer, x, b.F, at_sites(expected, places(b)))
    pool = ME.MinkowskiMaxPooling(2, 2, dimension=3)(x)
    assert pool.coordinate_map_key == a.coordinate_map_key


@pytest.mark.parametrize("size, stride", [(2, 2), (3, 2), (3, 1)])
@pytest.mark.parametrize("kind", ["Sum", "Avg", "Max"])
@pytest.mark.parametrize("sites", ["new", "there"])
def test_pooling(device: torch.device, kind: str, size: int, stride: int, sites: str) -> None:
    x = tensor(device)
    if sites == "there":
        x.coordinate_manager.stride(x.coordinate_map_key, stride)
    y = getattr(ME, f"Minkowski{kind}Pooling")(size, stride, dimension=3)(x)
    low = -1 if size == 3 else 0
    rows = {tuple(cell): row for row, cell in enumerate(x.C.tolist())}
    steps = list(itertools.product(range(low, low + size), repeat=3))
    expected = []
    for item, *cell in y.C.tolist():
        near = [rows.get((item, *(c + s for c, s in zip(cell, step)))) for step in steps]
        found = x.F[[row for row in near if row is not None]]
        of = {"Sum": lambda f: f.sum(0), "Avg": lambda f: f.mean(0), "Max": lambda f: f.amax(0)}
        expected.append(of[kind](found))
    close(y.F, torch.stack(expected), 30)
    weights = torch.randn_like(y.F)
    mine = torch.autograd.grad((y.F * weights).sum(), x.F)[0]
    close(mine, torch.autograd.grad((torch.stack(expected) * weights).sum(), x.F)[0], 30)


def test_unpooling(device: torch.device) -> None:
    x = tensor(device)
    coarse = ME.MinkowskiAvgPooling(2, 2, dimension=3)(x)
    back = ME.MinkowskiPoolingTranspose(2, 2, dimension=3)(coarse)
    rows = {tuple(cell): row for row, cell in enumerate(coarse.C.tolist())}
    expected = coarse.F[[rows[(b, *(v // 2 * 2 for v in cell))] for b, *cell in x.C.tolist()]]
    assert back.coordinate_map_key == x.coordinate_map_key
    close(back.F, expected)


def test_batch_items(device: torch.device) -> None:
    x = tensor(device)
    items = [x.F[x.C[:, 0] == item] for item in range(2)]
    average = ME.MinkowskiGlobalPooling()(x)
    close(average.F, torch.stack([rows.mean(0) for rows in items]), 100)
    close(ME.MinkowskiGlobalMaxPooling()(x).F, torch.stack([rows.amax(0) for rows in items]))
    assert average.C.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]
    spread = average.F[x.C[:, 0].long()]
    close(ME.MinkowskiBroadcastMultiplication()(x, average).F, x.F * spread)
    close(ME.MinkowskiBroadcastConcatenation()(x, average).F, torch.cat([x.F, spread], 1))
    coordinates, features = x.decomposed_coordinates_and_features
    assert [len(part) for part in coordinates] == [len(rows) for rows in items]
    assert torch.equal(features[1], x.features_at(1)) and torch.equal(coordinates[0], x.coordinates_at(0))
    norm = ME.MinkowskiInstanceNorm(3).to(device, working_type(device))(x)
    expected = (items[1] - items[1].mean(0)) / (items[1].var(0, unbiased=False) + 1e-8).sqrt()
    close(norm.F[x.C[:, 0] == 1], expected, 300)


def test_different_sites(device: torch.device) -> None:
    x = tensor(device)
    half = ME.MinkowskiPruning()(x, x.C[:, 1] >= 0)
    assert bool((half.C[:, 1] >= 0).all()) and half.coordinate_manager is x.coordinate_manager
    kept = x.C[:, 1] >= 0
    for operation in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b):
        both = operation(x, half)
        rows = {tuple(cell): row for row, cell in enumerate(both.C.tolist())}
        found = both.F[[rows[tuple(cell)] for cell in x.C.tolist()]]
        close(found, torch.where(kept[:, None], operation(x.F, x.F), x.F))
    union = ME.MinkowskiUnion()(half, ME.MinkowskiPruning()(x, ~kept))
    assert len(union) == len(x)
    close(union.F.sum(0), x.F.sum(0), 200)
    with pytest.raises(pumice.UserError, match=r"ME.cat: tensors\[1\] is at"):
        ME.cat(x, half)
    close(ME.cat(x, x).F, torch.cat([x.F, x.F], 1))
    with pytest.raises(pumice.UserError, match="different coordinate managers"):
        x + tensor(device)


@pytest.mark.parametrize("mode", list(Mode)[:3] + [Mode.MAX_POOL])
def test_quantization(device: torch.device, mode: Mode) -> None:
    cells = torch.randint(-2, 2, (60, 3), dtype=torch.int32)
    cells[:, 0] = 0
    features = torch.randn(60, 2, dtype=working_type(device))
    x = ME.SparseTensor(features.to(device), cells.to(device), quantization_mode=mode)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, cell in enumerate(cells.tolist()):
        groups.setdefault(tuple(cell), []).append(row)
    of = {
        Mode.RANDOM_SUBSAMPLE: lambda f: f[0], Mode.UNWEIGHTED_AVERAGE: lambda f: f.mean(0),
        Mode.UNWEIGHTED_SUM: lambda f: f.sum(0), Mode.MAX_POOL: lambda f: f.amax(0),
    }[mode]
    expected = torch.stack([of(features[groups[tuple(cell)]]) for cell in x.C.tolist()])
    close(x.F.cpu(), expected, 60)
    assert torch.equal(x.C[x.inverse_mapping].cpu(), cells)
    assert torch.equal(cells[x.unique_index.cpu()], x.C.cpu())
    with pytest.raises(pumice.UserError, match="another quantization_mode"):
        ME.SparseTensor(features, cells, quantization_mode=Mode.NO_QUANTIZATION)


def test_fields(device: torch.device) -> None:
    points = torch.rand(80, 4) * 6 - 3
    points[:, 0] = torch.arange(80) % 2
    features = torch.randn(80, 2)
    field = ME.TensorField(features.to(device), points.to(device))
    x = field.sparse()
    cells = torch.floor(points).int()
    for row, cell in enumerate(x.C.cpu()):
        inside = (cells == cell).all(1)
        torch.testing.assert_close(x.F[row].cpu(), features[inside].mean(0))
    back = x.slice(field)
    assert torch.equal(back.F, x.F[field.inverse_mapping(x.coordinate_map_key)])
    assert x.cat_slice(field).F.shape == (80, 4) and torch.equal(back.C, field.C)
    coarse = ME.MinkowskiSumPooling(2, 2, dimension=3)(x)
    there = coarse.slice(field)
    rows = {tuple(cell): row for row, cell in enumerate(coarse.C.tolist())}
    wanted = [rows[(b, *(v // 2 * 2 for v in cell))] for b, *cell in cells.tolist()]
    assert torch.equal(there.F, coarse.F[wanted])
    assert field.sparse(coordinate_map_key=x.coordinate_map_key).F.equal(x.F)
    doubled = ME.MinkowskiReLU()(field) + field
    assert isinstance(doubled, ME.TensorField)

    splat = field.splat()
    torch.testing.assert_close(splat.F.sum(0).cpu(), features.sum(0), rtol=1e-4, atol=1e-4)
    whole = ME.TensorField(features.to(device), torch.floor(points).to(device)).splat()
    corners = itertools.product(cells.tolist(), itertools.product((0, 1), repeat=3))
    assert {tuple(c) for c in whole.C.tolist()} == {
        (b, *(v + step for v, step in zip(cell, steps))) for (b, *cell), steps in corners
    }
    torch.testing.assert_close(whole.F.sum(0).cpu(), features.sum(0), rtol=1e-4, atol=1e-4)


def test_interpolation_at_a_stride(device: torch.device) -> None:
    x = ME.SparseTensor(
        torch.tensor([[1.0], [3.0]], device=device),
        torch.tensor([[0, 0, 0, 0], [0, 2, 0, 0]], dtype=torch.int32, device=device), tensor_stride=2,
    )
    points = torch.tensor([[0, 0.0, 0, 0], [0, 1.0, 0, 0], [0, 1.5, 0, 0], [0, -1.0, 0, 0]], device=device)
    found = ME.MinkowskiInterpolation()(x, points)
    torch.testing.assert_close(found[:, 0].cpu(), torch.tensor([1.0, 2.0, 2.5, 0.5]))


def test_dense_and_back(device: torch.device) -> None:
    x = tensor(device)
    low = torch.IntTensor([-SHIFT] * 3)
    found, start, stride = x.dense(torch.Size([2, 3, EXTENT, EXTENT, EXTENT]), low)
    close(found, grid(x))
    assert start.tolist() == [[-SHIFT] * 3] and stride.tolist() == [1] * 3
    with pytest.raises(pumice.UserError, match="pass min_coordinate"):
        x.dense()
    again = ME.to_sparse(found.detach())
    assert len(again) == len(x)
    assert len(ME.to_sparse_all(found)) == 2 * EXTENT**3


def test_shared_manager(device: torch.device) -> None:
    ME.set_sparse_tensor_operation_mode(ME.SparseTensorOperationMode.SHARE_COORDINATE_MANAGER)
    try:
        a, b = tensor(device), tensor(device, count=50)
        assert a.coordinate_manager is b.coordinate_manager and len(a + b) >= len(a)
    finally:
        ME.set_sparse_tensor_operation_mode(ME.SparseTensorOperationMode.SEPARATE_COORDINATE_MANAGER)
        ME.clear_global_coordinate_manager()
    assert tensor(device).coordinate_manager is not a.coordinate_manager


def test_state_dict() -> None:
    net = torch.nn.Sequential(
        ME.MinkowskiConvolution(4, 8, 3, bias=True, dimension=3), ME.MinkowskiBatchNorm(8), ME.MinkowskiPReLU(),
        ME.MinkowskiConvolution(8, 8, 1, dimension=3), ME.MinkowskiConvolution(8, 8, 1, 2, dimension=3),
        ME.MinkowskiInstanceNorm(8), ME.MinkowskiLinear(8, 2),
    )
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert shapes == {
        "0.kernel": (27, 4, 8), "0.bias": (1, 8), "1.bn.weight": (8,), "1.bn.bias": (8,),
        "1.bn.running_mean": (8,), "1.bn.running_var": (8,), "1.bn.num_batches_tracked": (),
        "2.module.weight": (1,), "3.kernel": (8, 8), "4.kernel": (1, 8, 8), "5.weight": (1, 8),
        "5.bias": (1, 8), "6.linear.weight": (2, 8), "6.linear.bias": (2,),
    }
    pickle.loads(pickle.dumps(copy.deepcopy(net))).load_state_dict(net.state_dict())
    synced = ME.MinkowskiSyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(synced[1], ME.MinkowskiSyncBatchNorm) and synced.state_dict().keys() == shapes.keys()


def test_helpers() -> None:
    rng = np.random.default_rng(3)
    points, features = rng.uniform(-1, 1, (100, 3)), rng.normal(size=(100, 2))
    labels = rng.integers(0, 2, 100)
    cells, rows, merged, first, inverse = ME.utils.sparse_quantize(
        points, features, labels, return_index=True, return_inverse=True, quantization_size=0.5
    )
    assert (np.floor(points / 0.5) == cells[inverse]).all() and (features[first] == rows).all()
    for cell in range(len(cells)):
        values = set(labels[inverse == cell])
        assert merged[cell] == (values.pop() if len(values) == 1 else -100)
    coordinates = ME.utils.batched_coordinates([points / 0.5, points[:7] / 0.5])
    assert coordinates.dtype == torch.int32 and coordinates[:, 0].bincount().tolist() == [100, 7]
    batch = ME.utils.batch_sparse_collate([(cells, rows, merged)] * 2)
    assert len(batch) == 3 and len(batch[2]) == 2 * len(cells)
    assert len(ME.utils.SparseCollation(limit_numpoints=len(cells) + 1)([(cells, rows, merged)] * 2)[0]) == len(cells)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(device: torch.device, rows: int) -> None:
    cells = torch.zeros((rows, 4), dtype=torch.int32, device=device)
    x = ME.SparseTensor(torch.ones(rows, 2, device=device), cells)
    y = ME.MinkowskiConvolution(2, 3, 3, 2, dimension=3).to(device)(x)
    assert y.F.shape == (rows, 3)


def test_errors(device: torch.device) -> None:
    x = tensor(device)
    with pytest.raises(pumice.UserError, match="dimension 2, and its input 3"):
        ME.MinkowskiConvolution(3, 4, 3, dimension=2)(x)
    with pytest.raises(pumice.UserError, match="give 1 to 4"):
        ME.MinkowskiConvolution(3, 4, 3)
    with pytest.raises(pumice.UserError, match="HYPER_CUBE and HYPER_CROSS"):
        ME.KernelGenerator(3, region_type=ME.RegionType.CUSTOM, dimension=3)
    with pytest.raises(pumice.UserError, match="is no key of this coordinate manager"):
        x.coordinate_manager.sites(ME.CoordinateMapKey([7, 7, 7]))


NETWORK = """
import torch
from torch import nn
import MinkowskiEngine as ME
import MinkowskiEngine.MinkowskiFunctional as MEF
from MinkowskiEngine.modules.resnet_block import BasicBlock

class Net(ME.MinkowskiNetwork):
    def __init__(self, D):
        super().__init__(D)
        self.conv0 = ME.MinkowskiConvolution(2, 16, kernel_size=5, dimension=D)
        self.bn0 = ME.MinkowskiBatchNorm(16)
        self.conv1 = ME.MinkowskiConvolution(16, 16, kernel_size=2, stride=2, dimension=D)
        shortcut = nn.Sequential(ME.MinkowskiConvolution(16, 32, kernel_size=1, dimension=D), ME.MinkowskiBatchNorm(32))
        self.block = BasicBlock(16, 32, downsample=shortcut, dimension=D)
        self.up = ME.MinkowskiConvolutionTranspose(32, 16, kernel_size=2, stride=2, dimension=D)
        self.final = ME.MinkowskiConvolution(32, 3, kernel_size=1, bias=True, dimension=D)
        for m in self.modules():
            if isinstance(m, ME.MinkowskiConvolution):
                ME.utils.kaiming_normal_(m.kernel, mode="fan_out", nonlinearity="relu")
            if isinstance(m, ME.MinkowskiBatchNorm):
                nn.init.constant_(m.bn.weight, 1)
    def forward(self, x):
        a = MEF.relu(self.bn0(self.conv0(x)))
        return self.final(ME.cat(self.up(self.block(self.conv1(a))), a))

torch.manual_seed(0)
points = [torch.rand(400, 3) * 10 - 5 for _ in range(2)]
coords, feats = ME.utils.sparse_collate([torch.floor(p) for p in points], [torch.randn(400, 2)] * 2)
field = ME.TensorField(feats, coords.float())
net = Net(3)
labels = (coords[:, 1] > 0).long()
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
losses = []
for _ in range(20):
    loss = nn.functional.cross_entropy(net(field.sparse()).slice(field).F, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0], losses
print("trained", ME.__version__)
"""


@pytest.mark.parametrize("way", ["install", "shim"])
def test_a_network_written_for_minkowski_engine_trains_unmodified(way: str) -> None:
    assert run_unmodified(NETWORK, "MinkowskiEngine", way) == "trained 0.5.4"


def test_install_refuses_where_the_library_is_loaded() -> None:
    check_refusal("MinkowskiEngine")
