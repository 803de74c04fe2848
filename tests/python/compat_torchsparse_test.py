"""TorchSparse's interface: against dense convolution of PyTorch, in TorchSparse's layouts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as dense
from conftest import agree, at_sites, close, random_sites, working_type
from programs import check_refusal, run_unmodified

import pumice
from pumice.compat import install, torchsparse
from pumice.compat.torchsparse import PointTensor, SparseTensor
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F
from pumice.compat.torchsparse.utils.collate import sparse_collate, sparse_collate_fn
from pumice.compat.torchsparse.utils.quantize import sparse_quantize

EXTENT = 8


@pytest.fixture
def releases_before_2_1():
    torchsparse.use_version("2.0")
    yield
    torchsparse.use_version("2.1")


def tensor(device: torch.device, channels: int = 3, count: int = 250) -> SparseTensor:
    cells = random_sites(3, EXTENT, count).to(device)
    feats = torch.randn(len(cells), channels, dtype=working_type(device)).to(device).requires_grad_()
    return SparseTensor(feats, cells, spatial_range=(2, EXTENT, EXTENT, EXTENT))


def grid(x: SparseTensor) -> torch.Tensor:
    """[B, C, X, Y, Z]"""
    full = x.feats.new_zeros((2, EXTENT, EXTENT, EXTENT, x.feats.shape[1]))
    return full.index_put(tuple(x.coords.long().unbind(1)), x.feats).movedim(-1, 1)


def dense_weight(layer: spnn.Conv3d) -> torch.Tensor:
    """[out, in, x, y, z] of its kernel: an odd number of offsets has the first axis fastest, an even one
    the last."""
    kx, ky, kz = layer.kernel_size
    kernel = layer.kernel.reshape(-1, layer.in_channels, layer.out_channels)
    if kx * ky * kz % 2 == 1:
        return kernel.reshape(kz, ky, kx, *kernel.shape[1:]).permute(4, 3, 2, 1, 0)
    return kernel.reshape(kx, ky, kz, *kernel.shape[1:]).permute(4, 3, 0, 1, 2)


def compare(layer: spnn.Conv3d, x: SparseTensor, y: torch.Tensor, expected: torch.Tensor) -> None:
    agree(y, expected, (x.feats, *layer.parameters()), 100)


@pytest.mark.parametrize("size", [1, 2, 3, 5, (1, 3, 3), (3, 1, 3), (2, 3, 3), (4, 2, 1)])
def test_stride_1_keeps_the_sites(device: torch.device, size: object) -> None:
    x = tensor(device)
    layer = spnn.Conv3d(3, 5, size, bias=True).to(device, working_type(device))
    y = layer(x)
    assert y.coords is x.coords and y.stride == (1, 1, 1)
    odd = layer.kernel_volume % 2 == 1
    # Even kernels begin at their output on every axis, the odd ones too.
    pads = [p for k in reversed(layer.kernel_size) for p in ((k // 2, k // 2) if odd else (0, k - 1))]
    expected = dense.conv3d(dense.pad(grid(x), pads), dense_weight(layer), layer.bias)
    compare(layer, x, y.feats, at_sites(expected, x.coords))
    layer.eval()
    with torch.no_grad():
        close(layer(x).feats, y.feats.detach(), 100)
        for parameter in layer.parameters():
            parameter.mul_(2)
        close(layer(x).feats, 2 * y.feats.detach(), 100)


@pytest.mark.parametrize("size, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 2, (0, 1, 1)), (1, 2, 0),
                                                   ((1, 1, 3), (1, 1, 2), 0)])
def test_strided_and_back(device: torch.device, size: object, stride: object, padding: object) -> None:
    x = tensor(device)
    down = spnn.Conv3d(3, 4, size, stride, padding, bias=True).to(device, working_type(device))
    y = down(x)
    expected = dense.conv3d(grid(x), dense_weight(down), down.bias, stride=stride, padding=padding)
    assert y.spatial_range == (2, *expected.shape[2:])
    compare(down, x, y.feats, at_sites(expected, y.coords))

    up = spnn.Conv3d(4, 2, size, stride, transposed=True).to(device, working_type(device))
    inner = SparseTensor(y.feats.detach().requires_grad_(), y.coords, y.stride, y.spatial_range)
    inner._caches = y._caches
    back = up(inner)
    assert back.coords is x.coords and back.stride == (1, 1, 1)
    coarse = inner.feats.new_zeros((2, *expected.shape[2:], 4))
    coarse = coarse.index_put(tuple(y.coords.long().unbind(1)), inner.feats).movedim(-1, 1)
    weight = dense_weight(up).transpose(0, 1)
    pads = torchsparse.utils.make_ntuple(padding, 3)
    steps = torchsparse.utils.make_ntuple(stride, 3)
    sizes = zip(expected.shape[2:], up.kernel_size, steps, pads)
    short = tuple(EXTENT - ((n - 1) * s - 2 * p + k) for n, k, s, p in sizes)
    opened = dense.conv_transpose3d(coarse, weight, stride=steps, padding=pads, output_padding=short)
    compare(up, inner, back.feats, at_sites(opened, x.coords))


def test_generative(device: torch.device) -> None:
    x = tensor(device, count=20)
    layer = spnn.Conv3d(3, 4, 2, 2, transposed=True, generative=True).to(device, working_type(device))
    x.stride = (2, 2, 2)
    y = layer(x)
    assert len(y) == 8 * len(x) and y.stride == (1, 1, 1)
    expected = dense.conv_transpose3d(grid(x), dense_weight(layer).transpose(0, 1), stride=2)
    compare(layer, x, y.feats, at_sites(expected, y.coords))


def test_no_convolution_to_undo(device: torch.device) -> None:
    with pytest.raises(pumice.UserError, match="no convolution of both led to these sites"):
        spnn.Conv3d(3, 4, 2, 2, transposed=True).to(device, working_type(device))(tensor(device))


@pytest.mark.parametrize("coords", [torch.Tensor.detach, torch.Tensor.clone])
def test_tensors_made_anew_with_the_same_caches_are_where_they_were(device: torch.device, coords) -> None:
    """As code makes tensors of other features that keeps maps itself."""

    def anew(x: SparseTensor) -> SparseTensor:
        made = SparseTensor(x.feats, coords(x.coords), x.stride, x.spatial_range)
        made._caches = x._caches
        return made

    x = tensor(device)
    down, same = spnn.Conv3d(3, 4, 2, 2), spnn.Conv3d(4, 4, 3)
    up = spnn.Conv3d(4, 3, 2, 2, transposed=True)
    for layer in (down, same, up):
        layer.to(device, x.feats.dtype)
    expected = up(same(down(x)))
    for found in (up(anew(same(anew(down(anew(x)))))), up(anew(same(down(x))))):
        torch.testing.assert_close(found.feats, expected.feats)
        assert found.sites.is_same(x.sites)
    turned = anew(down(x))
    turned.coords = turned.coords.flip(0)
    with pytest.raises(pumice.UserError, match="led to these sites"):
        up(turned)


def test_negative_coordinates_and_no_border(device: torch.device) -> None:
    x = tensor(device)
    moved = x.coords - torch.tensor([0, 4, 4, 4], dtype=torch.int32, device=device)
    down = spnn.Conv3d(3, 4, 2, 2).to(device, working_type(device))
    there = down(SparseTensor(x.feats, moved))
    here = down(x)
    back = there.coords + torch.tensor([0, 2, 2, 2], dtype=torch.int32, device=device)
    close(there.feats[np.lexsort(back.cpu().T.numpy())], here.feats[np.lexsort(here.coords.cpu().T.numpy())], 30)


def test_before_2_1(device: torch.device, releases_before_2_1: None) -> None:
    """The batch index comes last and coordinates stay in cells of the finest level."""
    torchsparse.use_version("2.1")
    x = tensor(device)
    net = torch.nn.ModuleList([spnn.Conv3d(3, 4, 2, 2), spnn.Conv3d(4, 5, 3), spnn.Conv3d(5, 2, 2, 2, transposed=True)])
    net.to(device, working_type(device))
    new = [x]
    for layer in net:
        new.append(layer(new[-1]))
    torchsparse.use_version("2.0")
    old = [SparseTensor(x.feats, torch.cat([x.coords[:, 1:], x.coords[:, :1]], 1))]
    for layer in net:
        old.append(layer(old[-1]))
    assert old[1].stride == (2, 2, 2) and bool((old[1].coords[:, :3] % 2 == 0).all())
    assert old[3].coords is old[0].coords
    close(old[3].feats, new[3].feats, 200)


def test_state_dict() -> None:
    net = torch.nn.Sequential(
        spnn.Conv3d(4, 8, 3), spnn.BatchNorm(8), spnn.ReLU(True), spnn.Conv3d(8, 8, 2, 2, bias=True),
        spnn.Conv3d(8, 16, 1), spnn.Conv3d(8, 16, 1, 2),
    )
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert shapes == {
        "0.kernel": (27, 4, 8), "1.weight": (8,), "1.bias": (8,), "1.running_mean": (8,),
        "1.running_var": (8,), "1.num_batches_tracked": (), "3.kernel": (8, 8, 8), "3.bias": (8,),
        "4.kernel": (8, 16), "5.kernel": (1, 8, 16),
    }
    again = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    again.load_state_dict(net.state_dict())


def test_joining_tensors(device: torch.device) -> None:
    x = tensor(device)
    both = torchsparse.cat([x, x + x])
    close(both.feats, torch.cat([x.feats, 2 * x.feats], 1))
    other = SparseTensor(x.feats[:20], x.coords[:20])
    with pytest.raises(pumice.UserError, match="different sites"):
        torchsparse.cat([x, other])
    with pytest.raises(pumice.UserError, match="generative_add unites"):
        x + other
    total = torchsparse.generative_add(SparseTensor(x.feats[20:], x.coords[20:]), other)
    order, place = np.lexsort(total.coords.cpu().T.numpy()), np.lexsort(x.coords.cpu().T.numpy())
    close(total.feats[order], x.feats[place])
    close(x.dense(), grid(x).movedim(1, -1))


def test_pooling_norms_and_crops(device: torch.device) -> None:
    x = tensor(device, channels=4)
    type_ = working_type(device)
    items = [x.feats[x.coords[:, 0] == item] for item in range(2)]
    close(spnn.GlobalAvgPool()(x), torch.stack([rows.mean(0) for rows in items]), 100)
    close(spnn.GlobalMaxPool()(x), torch.stack([rows.amax(0) for rows in items]))
    normed = spnn.InstanceNorm(4)(x).feats
    for item in range(2):
        rows = normed[x.coords[:, 0] == item]
        close(rows.mean(0), torch.zeros(4, dtype=type_, device=device), 300)
    expected = dense.group_norm(items[0].T[None], 2)[0].T
    close(spnn.GroupNorm(2, 4).to(device, type_)(x).feats[x.coords[:, 0] == 0], expected, 300)
    cut = spnn.SparseCrop((1, 1, 1), (5, 6, 7))(x)
    assert len(cut) == int(((x.coords[:, 1:] >= 1) & (x.coords[:, 1:] < x.coords.new_tensor([5, 6, 7]))).all(1).sum())
    batch = spnn.BatchNorm(4).to(device, type_)
    close(batch(x).feats, dense.batch_norm(x.feats, None, None, training=True), 300)
    assert len(batch(SparseTensor(x.feats[:0], x.coords[:0]))) == 0


def test_dilation_is_ignored_aloud(device: torch.device) -> None:
    with pytest.warns(UserWarning, match="no effect, as in TorchSparse"):
        layer = spnn.Conv3d(3, 4, 3, dilation=2)
    layer.to(device, working_type(device))
    plain = spnn.Conv3d(3, 4, 3).to(device, working_type(device))
    plain.load_state_dict(layer.state_dict())
    x = tensor(device)
    assert torch.equal(layer(x).feats, plain(x).feats)


def test_quantize_and_collate() -> None:
    points = np.random.default_rng(1).uniform(-3, 3, (200, 3))
    cells, first, inverse = sparse_quantize(points, 0.5, return_index=True, return_inverse=True)
    assert cells.dtype == np.int32
    assert (np.floor(points / 0.5) == cells[inverse]).all()
    assert (np.floor(points[first] / 0.5) == cells).all()
    assert len(np.unique(cells, axis=0)) == len(cells)
    single = SparseTensor(torch.randn(len(cells), 2), torch.from_numpy(cells))
    batch = sparse_collate_fn([{"input": single, "label": np.zeros(3), "name": "a"}] * 2)
    assert batch["input"].coords.shape == (2 * len(cells), 4) and batch["label"].shape == (2, 3)
    assert batch["name"] == ["a", "a"]
    assert (batch["input"].coords[len(cells) :, 0] == 1).all()
    assert sparse_collate([single]).coords.dtype == torch.int32


def test_points_and_voxels_as_in_spvcnn(device: torch.device, releases_before_2_1: None) -> None:
    """What SPVCNN's models do between points and voxels, against plain loops."""
    points = torch.rand(300, 3, device=device) * 6
    z = PointTensor(torch.randn(300, 4, device=device), torch.cat([points, torch.zeros(300, 1, device=device)], 1))
    hashes = F.sphash(torch.floor(z.C).int())
    voxels = torch.unique(hashes)
    index = F.sphashquery(hashes, voxels)
    counts = F.spcount(index.int(), len(voxels))
    coords = torch.round(F.spvoxelize(torch.floor(z.C), index, counts)).int()
    x = SparseTensor(F.spvoxelize(z.F, index, counts), coords, 1)
    assert len(voxels) == len(torch.unique(torch.floor(z.C), dim=0))
    for row in range(0, len(coords), 17):
        inside = (torch.floor(z.C).int() == coords[row]).all(1)
        assert int(counts[row]) == int(inside.sum())
        torch.testing.assert_close(x.feats[row], z.F[inside].mean(0))

    offsets = spnn.utils.get_kernel_offsets(2, x.s, 1, device=device)
    found = F.sphashquery(F.sphash(torch.floor(z.C).int(), offsets), F.sphash(x.C))
    assert found.shape == (8, 300)
    weights = F.calc_ti_weights(z.C, found, scale=1)
    there = F.spdevoxelize(x.feats, found.T, weights.T)
    rows = {tuple(cell): row for row, cell in enumerate(x.C.tolist())}
    for point in range(0, 300, 23):
        total, share = torch.zeros(4, device=device), 0.0
        base = torch.floor(z.C[point, :3])
        for corner in range(8):
            step = torch.tensor([corner >> 2, corner >> 1 & 1, corner & 1], device=device)
            row = rows.get((*(base + step).int().tolist(), 0))
            if row is not None:
                weight = (1 - (z.C[point, :3] - base - step).abs()).prod()
                total, share = total + weight * x.feats[row], share + weight
        torch.testing.assert_close(there[point], total / share, rtol=1e-4, atol=1e-5)


NETWORK = """
import torch
from torch import nn
import torchsparse
import torchsparse.nn as spnn
from torchsparse import SparseTensor
from torchsparse.nn import functional as F
from torchsparse.utils.collate import sparse_collate
from torchsparse.utils.quantize import sparse_quantize
import numpy as np

F.set_kmap_mode("hashmap")

class Block(nn.Module):
    def __init__(self, inc, outc):
        super().__init__()
        self.net = nn.Sequential(spnn.Conv3d(inc, outc, 3), spnn.BatchNorm(outc), spnn.ReLU(True),
                                 spnn.Conv3d(outc, outc, 3), spnn.BatchNorm(outc))
        self.downsample = nn.Sequential(spnn.Conv3d(inc, outc, 1), spnn.BatchNorm(outc))
        self.relu = spnn.ReLU(True)
    def forward(self, x):
        return self.relu(self.net(x) + self.downsample(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.down, self.block = Block(4, 16), spnn.Conv3d(16, 16, 2, 2), Block(16, 24)
        self.up, self.out = spnn.Conv3d(24, 16, 2, 2, transposed=True), Block(32, 16)
        self.head = nn.Linear(16, 3)
    def forward(self, x):
        a = self.stem(x)
        b = self.up(self.block(self.down(a)))
        return self.head(self.out(torchsparse.cat([a, b])).F)

torch.manual_seed(0)
points = np.random.default_rng(0).uniform(0, 4, (600, 3))
coords = sparse_quantize(points, 0.25)
x = sparse_collate([SparseTensor(torch.randn(len(coords), 4), torch.from_numpy(coords))] * 2)
labels = (x.coords[:, 1] > 8).long()
net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
losses = []
for _ in range(25):
    loss = nn.functional.cross_entropy(net(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0], losses
print("trained", torchsparse.__version__)
"""


@pytest.mark.parametrize("way", ["install", "shim"])
def test_a_network_written_for_torchsparse_trains_unmodified(way: str) -> None:
    assert run_unmodified(NETWORK, "torchsparse", way) == "trained 2.1.0"


def test_install_refuses_where_the_library_is_loaded() -> None:
    check_refusal("torchsparse")
    with pytest.raises(pumice.UserError, match="has no equal here"):
        install("caffe")
