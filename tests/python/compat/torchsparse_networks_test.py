"""Networks as TorchSparse's own projects write them: their state dicts, its backbones, and points among
voxels by tables."""

from __future__ import annotations

import pathlib

import pytest
import torch
from conftest import random_sites
from torchsparse_state import switches

from pumice import ops
from pumice.compat import torchsparse
from pumice.compat.torchsparse import SparseTensor, backbones
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F

# Of each parameter "name kernel-shape", of each norm and linear layer its name, kind and channels: recorded
# from the projects' code at the commits that docs/how_to/come_from_torchsparse.md names.
RECORDED = pathlib.Path(__file__).parent / "torchsparse_state_dicts.txt"


def recorded() -> dict[str, list[list[str]]]:
    networks: dict[str, list[list[str]]] = {}
    for line in RECORDED.read_text().splitlines():
        if line.startswith("["):
            rows = networks.setdefault(line.strip("[]"), [])
        elif line:
            rows.append(line.split())
    return networks


def shapes_of(rows: list[list[str]]) -> dict[str, tuple[int, ...]]:
    """As a checkpoint has them."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, *rest in rows:
        if rest[0] == "norm":
            channels = (int(rest[1]),)
            shapes |= {f"{name}.{of}": channels for of in ("weight", "bias", "running_mean", "running_var")}
            shapes[f"{name}.num_batches_tracked"] = ()
        elif rest[0] == "linear":
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (int(rest[2]), int(rest[1])), (int(rest[2]),)
        else:
            shapes[name] = tuple(map(int, rest))
    return shapes


def made_of(rows: list[list[str]]) -> torch.nn.Module:
    """The layers under their names."""
    network = torch.nn.Module()
    for name, *rest in rows:
        if rest[0] == "norm":
            layer: torch.nn.Module = spnn.BatchNorm(int(rest[1]))
        elif rest[0] == "linear":
            layer = torch.nn.Linear(int(rest[1]), int(rest[2]))
        else:
            name = name.removesuffix(".kernel")
            *volume, inputs, outputs = map(int, rest)
            size = {(): 1, (8,): 2, (27,): 3, (3,): (1, 3, 1)}[tuple(volume)]
            layer = spnn.Conv3d(inputs, outputs, size, stride=2 if size == 2 else 1)
        *above, last = name.split(".")
        owner = network
        for part in above:
            if not hasattr(owner, part):
                owner.add_module(part, torch.nn.Module())
            owner = getattr(owner, part)
        owner.add_module(last, layer)
    return network


@pytest.mark.parametrize("release", ["1.4", "2.1"])
@pytest.mark.parametrize("network", recorded())
def test_published_state_dicts_load(network: str, release: str) -> None:
    rows = recorded()[network]
    checkpoint = {name: torch.full(shape, 0.5) for name, shape in shapes_of(rows).items()}
    assert len(checkpoint) > 100
    with switches(release):
        made = made_of(rows)
    made.load_state_dict(checkpoint, strict=True)


@pytest.mark.parametrize("name", ["SparseResNet21D", "SparseResUNet42"])
def test_backbones_have_the_names_and_shapes_of_torchsparse(name: str) -> None:
    shapes = shapes_of(recorded()[f"{name} of torchsparse"])
    found = getattr(backbones, name)().state_dict()
    assert list(found) == list(shapes)
    assert {key: tuple(value.shape) for key, value in found.items()} == shapes


def batch(device: torch.device, extent: int = 40, count: int = 600) -> SparseTensor:
    cells = random_sites(3, extent, count).to(device)
    return SparseTensor(torch.randn(len(cells), 4, device=device), cells)


def test_a_u_net_goes_there_and_back(device: torch.device) -> None:
    x = batch(device)
    net = backbones.SparseResUNet42(width_multiplier=0.25).to(device)
    outputs = net(x)
    assert [y.stride[0] for y in outputs] == [1, 2, 4, 8, 16, 8, 4, 2, 1]
    assert [y.feats.shape[1] for y in outputs] == [8, 8, 16, 32, 64, 64, 32, 24, 24]
    for fine, back in zip(outputs[:4], outputs[:4:-1]):
        assert fine.coords is back.coords
    outputs[-1].feats.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def test_an_encoder_ends_with_the_last_site(device: torch.device) -> None:
    """Of its sites every one is the floor of some site's window; with the border none is past the end."""
    x = batch(device)
    with switches("2.1", border=True):
        net = backbones.SparseResNet21D(width_multiplier=0.25).to(device)
        outputs = net(x)
    assert [y.stride for y in outputs] == [(1,) * 3, (2,) * 3, (4,) * 3, (8,) * 3, (8, 16, 8)]
    last = x.coords.amax(0)[1:]
    for y, size in zip(outputs[1:4], [3, 3, 3]):
        last = torch.div(last - (size - 1), 2, rounding_mode="floor")
        assert int(y.coords.min()) >= 0 and bool((y.coords[:, 1:] <= last).all())
        last = y.coords.amax(0)[1:]
    outputs[-1].feats.square().sum().backward()
    grads = [p.grad for p in net.parameters()]
    assert all(grad is not None and grad.isfinite().all() for grad in grads)


class Points(SparseTensor):
    """As projects on 2.1 make them: float coordinates, and rows found once, in the cache."""

    def __init__(self, feats: torch.Tensor, coords: torch.Tensor) -> None:
        super().__init__(feats=feats, coords=coords)
        self._caches.rows = {}


def rows_in(voxels: torch.Tensor, asked: torch.Tensor, size: int) -> torch.Tensor:
    """[N, size³] rows of voxels at and above cells, batch index first; -1: none."""
    table = torchsparse.backend.GPUHashTable(
        voxels.new_zeros(2 * len(voxels), dtype=torch.int64), voxels.new_zeros(2 * len(voxels))
    )
    table.insert_coords(voxels[:, [1, 2, 3, 0]])
    sizes = torchsparse.utils.make_tensor((size,) * 3, dtype=torch.int32, device=voxels.device)
    steps = torchsparse.utils.make_tensor((1, 1, 1), dtype=torch.int32, device=voxels.device)
    return (table.lookup_coords(asked[:, [1, 2, 3, 0]], sizes, steps, size**3) - 1)[: len(asked)]


class PointsAndVoxels(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Sequential(spnn.Conv3d(4, 8, 3), spnn.BatchNorm(8), spnn.ReLU(True))
        self.down = torch.nn.Sequential(spnn.Conv3d(8, 16, 2, stride=2), spnn.BatchNorm(16), spnn.ReLU(True))
        self.up = spnn.Conv3d(16, 8, 2, stride=2, transposed=True)
        self.lift, self.head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)

    def to_points(self, x: SparseTensor, points: Points) -> torch.Tensor:
        if x.s not in points._caches.rows:
            places = torch.cat([points.C[:, :1], points.C[:, 1:] / x.s[0]], 1)
            found = rows_in(x.C, places.floor().int(), 2)
            points._caches.rows[x.s] = found, F.calc_ti_weights(places[:, 1:], found)
        return F.spdevoxelize(x.F, *points._caches.rows[x.s])

    def forward(self, x: SparseTensor) -> torch.Tensor:
        points = Points(x.F, x.C.float())
        fine = self.stem(x)
        coarse = self.down(fine)
        own = rows_in(coarse.C, torch.cat([x.C[:, :1], x.C[:, 1:] // 2], 1).int(), 1)[:, 0]
        lifted = self.to_points(coarse, points) + self.lift(self.to_points(fine, points))
        again = SparseTensor(ops.reduce_rows(lifted, own, len(coarse)), coarse.C, coarse.s)
        again._caches = coarse._caches
        return self.head(lifted + torchsparse.cat([self.up(again), fine]).F)


def test_points_among_voxels_train_and_follow_their_rows(device: torch.device) -> None:
    """Labels of points are learnt, and a permuted scan has permuted outputs."""
    with switches("2.1"):
        x = batch(device, extent=12, count=500)
        labels = (x.C[:, 1] // 5).long()
        net = PointsAndVoxels().to(device)
        optimizer = torch.optim.Adam(net.parameters(), 1e-2)
        losses = []
        for _ in range(30):
            loss = torch.nn.functional.cross_entropy(net(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0], losses
        net.eval()
        order = torch.randperm(len(x), device=device)
        with torch.no_grad():
            turned = net(SparseTensor(x.F[order], x.C[order]))
            torch.testing.assert_close(turned, net(x)[order], rtol=1e-4, atol=1e-4)
