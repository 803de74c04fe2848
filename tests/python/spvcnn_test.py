"""SPVCNN beside the same network written with PyTorch's own operators."""

from __future__ import annotations

import itertools
import pathlib

import pytest
import torch
import torch.nn.functional as F
from conftest import close, random_tensor, working_type
from torch import Tensor

import pumice
from pumice import models
from pumice.convert import LAYOUTS, convert_state, from_common
from pumice.nn.convolution import Convolution

CHANNELS = [20, 20, 40, 81, 163, 163, 81, 61, 61]  # of cr = 0.64: rounded down, as spvnas does
Cells = dict[tuple[int, ...], int]  # site to row


def small(device: torch.device, dtype: torch.dtype, in_channels: int = 4) -> models.SPVCNN:
    return models.SPVCNN(in_channels, 5, cr=0.1, dropout=0.0).to(device, dtype)


class Reference:
    """Forward alone, a row of a table for every site, the weights of the model it is made for."""

    def __init__(self, state: dict[str, Tensor], training: bool) -> None:
        self.state = state
        self.training = training

    def norm(self, x: Tensor, name: str) -> Tensor:
        s = self.state
        mean, variance = s[f"{name}.running_mean"].clone(), s[f"{name}.running_var"].clone()
        return F.batch_norm(
            x, mean, variance, s[f"{name}.weight"], s[f"{name}.bias"], self.training
        )

    def submanifold(self, x: Tensor, cells: Cells, name: str, size: int) -> Tensor:
        weight = self.state[f"{name}.weight"]
        reach = range(-(size // 2), size // 2 + 1)
        result = x.new_zeros(len(x), weight.shape[2])
        for k, offset in enumerate(itertools.product(reach, repeat=3)):
            pairs = [
                (row, cells[(b, *(c + o for c, o in zip(cell, offset)))])
                for (b, *cell), row in cells.items()
                if (b, *(c + o for c, o in zip(cell, offset))) in cells
            ]
            if pairs:
                out, into = torch.tensor(pairs).T
                result = result.index_add(0, out, x[into] @ weight[k])
        return result

    def block(self, x: Tensor, cells: Cells, name: str) -> Tensor:
        y = torch.relu(self.norm(self.submanifold(x, cells, f"{name}.net.0", 3), f"{name}.net.1"))
        y = self.norm(self.submanifold(y, cells, f"{name}.net.3", 3), f"{name}.net.4")
        if f"{name}.downsample.0.weight" in self.state:
            x = self.submanifold(x, cells, f"{name}.downsample.0", 1)
            x = self.norm(x, f"{name}.downsample.1")
        return torch.relu(x + y)

    def halved(self, x: Tensor, cells: Cells, name: str, coarse: Cells) -> Tensor:
        weight = self.state[f"{name}.net.0.weight"]
        y = torch.stack([
            sum(
                x[row] @ weight[(cell[1] % 2) * 4 + (cell[2] % 2) * 2 + cell[3] % 2]
                for cell, row in cells.items()
                if parent(cell) == site
            )
            for site in coarse
        ])  # fmt: skip
        y = torch.relu(self.norm(y, f"{name}.net.1"))
        stage = name.split(".")[0]
        return self.block(self.block(y, coarse, f"{stage}.1"), coarse, f"{stage}.2")

    def doubled(self, x: Tensor, coarse: Cells, up: int, skip: Tensor, cells: Cells) -> Tensor:
        weight = self.state[f"up{up}.0.net.0.weight"]
        y = torch.stack([
            x[coarse[parent(cell)]] @ weight[(cell[1] % 2) * 4 + (cell[2] % 2) * 2 + cell[3] % 2]
            for cell in cells
        ])  # fmt: skip
        y = torch.relu(self.norm(y, f"up{up}.0.net.1"))
        y = torch.cat([y, skip], 1)
        return self.block(self.block(y, cells, f"up{up}.1.0"), cells, f"up{up}.1.1")

    def at_points(self, x: Tensor, cells: Cells, points: Tensor, stride: int) -> Tensor:
        result = []
        for item, *where in points.tolist():
            where = [value / stride for value in where]
            base = [int(value // 1) for value in where]
            found, shares = [], []
            for corner in itertools.product((0, 1), repeat=3):
                weight = 1.0
                for value, low, up in zip(where, base, corner):
                    weight *= value - low if up else 1 - (value - low)
                cell = (int(item), *(low + up for low, up in zip(base, corner)))
                if weight > 0 and cell in cells:
                    found.append(cells[cell])
                    shares.append(weight)
            share = torch.tensor(shares) / torch.tensor(sum(shares))  # in float32, as positions are
            result.append(share.to(x.dtype) @ x[found])
        return torch.stack(result)

    def at_voxels(self, z: Tensor, cells: Cells, points: Tensor, stride: int) -> Tensor:
        row_of = torch.tensor([
            cells[(int(item), *(int(value // stride) for value in where))]
            for item, *where in points.tolist()
        ])
        counts = torch.bincount(row_of, minlength=len(cells))
        return z.new_zeros(len(cells), z.shape[1]).index_add(0, row_of, z) / counts[:, None]

    def transformed(self, z: Tensor, number: int) -> Tensor:
        name = f"point_transforms.{number}"
        linear = F.linear(z, self.state[f"{name}.0.weight"], self.state[f"{name}.0.bias"])
        return torch.relu(self.norm(linear, f"{name}.1"))

    def scores(self, features: Tensor, points: Tensor) -> Tensor:
        sites = {(int(b), *(int(v // 1) for v in where)) for b, *where in points.tolist()}
        levels: list[Cells] = [{cell: row for row, cell in enumerate(sorted(sites))}]
        for _ in range(4):
            levels.append({c: r for r, c in enumerate(sorted({parent(c) for c in levels[-1]}))})
        x = self.at_voxels(features, levels[0], points, 1)
        for i in (0, 3):
            x = self.submanifold(x, levels[0], f"stem.{i}", 3)
            x = torch.relu(self.norm(x, f"stem.{i + 1}"))
        x0 = x
        z = self.at_points(x0, levels[0], points, 1)
        down = [self.at_voxels(z, levels[0], points, 1)]
        for i in range(4):
            down.append(self.halved(down[-1], levels[i], f"stage{i + 1}.0", levels[i + 1]))
        z = self.at_points(down[4], levels[4], points, 16) + self.transformed(z, 0)
        y = self.at_voxels(z, levels[4], points, 16)
        y = self.doubled(y, levels[4], 1, down[3], levels[3])
        y = self.doubled(y, levels[3], 2, down[2], levels[2])
        z = self.at_points(y, levels[2], points, 4) + self.transformed(z, 1)
        y = self.at_voxels(z, levels[2], points, 4)
        y = self.doubled(y, levels[2], 3, down[1], levels[1])
        y = self.doubled(y, levels[1], 4, x0, levels[0])
        z = self.at_points(y, levels[0], points, 1) + self.transformed(z, 2)
        return F.linear(z, self.state["classifier.0.weight"], self.state["classifier.0.bias"])


def parent(cell: tuple[int, ...]) -> tuple[int, ...]:
    return (cell[0], *(value // 2 for value in cell[1:]))


def random_positions(count: int, extent: float = 40.0) -> Tensor:
    """Some of them below 0, and several in one cell; on a grid so coarse that float32 holds their
    shares of cells without rounding."""
    where = (torch.rand(count, 3) - 0.4) * extent
    where[1::3] = where[::3][: len(where[1::3])] + 0.3 * torch.rand(len(where[1::3]), 3)
    return torch.cat([torch.randint(0, 2, (count, 1)).float(), (where * 8).round() / 8], 1)


@pytest.mark.parametrize("training", [False, True])
def test_scores_beside_plain_pytorch(device: torch.device, training: bool) -> None:
    dtype = working_type(device)
    model = small(device, dtype).train(training)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0, 0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5)
    state = {name: value.detach().cpu().double() for name, value in model.state_dict().items()}
    positions, features = random_positions(30), torch.randn(30, 4, dtype=dtype)
    expected = Reference(state, training).scores(features.double(), positions)
    found = model(models.PointTensor(positions.to(device), features.to(device)), batch_size=2)
    assert found.shape == (30, 5)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-3
    scale = expected.abs().max().item()
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("count", [0, 1, 400])
def test_every_site_is_a_point(device: torch.device, count: int) -> None:
    x = random_tensor(count=count, extent=48, dtype=working_type(device), device=device)
    model = small(device, x.dtype).eval()
    y = model(x)
    assert y.coords.is_same(x.coords) and y.features.shape == (len(x), 5)
    points = models.PointTensor(x.indices.float(), x.features)
    close(y.features, model(points, batch_size=2), sums=100)


def test_every_parameter_gets_a_gradient(device: torch.device) -> None:
    model = small(device, torch.float32)
    features = torch.randn(300, 4, device=device, requires_grad=True)
    points = models.PointTensor(random_positions(300).to(device), features)
    model(points).square().mean().backward()
    for name, parameter in [*model.named_parameters(), ("the features", features)]:
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()) and bool(parameter.grad.any()), name


def test_it_learns(device: torch.device) -> None:
    """From the features of single points, of which many share a voxel."""
    model = models.SPVCNN(4, 2, cr=0.1).to(device)
    positions = random_positions(200, 8.0).to(device)
    features = torch.randn(200, 4, device=device)
    truth = (features[:, 0] > 0).long()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-2)
    losses = []
    for _ in range(12):
        loss = F.cross_entropy(model(models.PointTensor(positions, features)), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0], losses


def test_state_dicts_go_round(tmp_path: pathlib.Path) -> None:
    first, second = small(torch.device("cpu"), torch.float32), small(torch.device("cpu"), torch.float32)
    torch.save(first.state_dict(), tmp_path / "model.pt")
    second.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    x = random_tensor(dtype=torch.float32, extent=16)
    assert torch.equal(first.eval()(x).features, second.eval()(x).features)
    pumice.save_weights(first, tmp_path / "model.safetensors")
    third = small(torch.device("cpu"), torch.float32)
    pumice.load_weights(third, tmp_path / "model.safetensors")
    assert all(torch.equal(v, third.state_dict()[k]) for k, v in first.state_dict().items())


def test_norms_over_processes(device: torch.device) -> None:
    x = random_tensor(extent=48, count=100, dtype=torch.float32, device=device)
    model = small(device, torch.float32)
    before = model.eval()(x).features
    names = list(model.state_dict())
    model = pumice.nn.SyncBatchNorm.convert(model)
    assert list(model.state_dict()) == names
    torch.testing.assert_close(model(x).features, before, rtol=1e-4, atol=1e-4)
    assert not any(type(module) is pumice.nn.BatchNorm for module in model.modules())


def spvnas_state(channels: list[int], classes: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the published network, written out."""
    c, shapes = channels, {}

    def conv(name: str, size: int, inputs: int, outputs: int) -> None:
        shapes[f"{name}.kernel"] = (inputs, outputs) if size == 1 else (size**3, inputs, outputs)

    def norm(name: str, width: int) -> None:
        for last in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{last}"] = (width,)

    def residual(name: str, inputs: int, outputs: int) -> None:
        conv(f"{name}.net.0", 3, inputs, outputs)
        conv(f"{name}.net.3", 3, outputs, outputs)
        norm(f"{name}.net.1", outputs)
        norm(f"{name}.net.4", outputs)
        if inputs != outputs:
            conv(f"{name}.downsample.0", 1, inputs, outputs)
            norm(f"{name}.downsample.1", outputs)

    for i, inputs in ((0, 4), (3, c[0])):
        conv(f"stem.{i}", 3, inputs, c[0])
        norm(f"stem.{i + 1}", c[0])
    for i in range(4):
        conv(f"stage{i + 1}.0.net.0", 2, c[i], c[i])
        norm(f"stage{i + 1}.0.net.1", c[i])
        residual(f"stage{i + 1}.1", c[i], c[i + 1])
        residual(f"stage{i + 1}.2", c[i + 1], c[i + 1])
        conv(f"up{i + 1}.0.net.0", 2, c[i + 4], c[i + 5])
        norm(f"up{i + 1}.0.net.1", c[i + 5])
        residual(f"up{i + 1}.1.0", c[i + 5] + c[3 - i], c[i + 5])
        residual(f"up{i + 1}.1.1", c[i + 5], c[i + 5])
    for i, (low, high) in enumerate(((0, 4), (4, 6), (6, 8))):
        shapes[f"point_transforms.{i}.0.weight"] = (c[high], c[low])
        shapes[f"point_transforms.{i}.0.bias"] = (c[high],)
        norm(f"point_transforms.{i}.1", c[high])
    shapes["classifier.0.weight"] = (classes, c[8])
    shapes["classifier.0.bias"] = (classes,)
    return shapes


@pytest.mark.parametrize("cr, channels", [(0.64, CHANNELS), (1.0, list(models.WIDTHS["spvnas"]))])
def test_checkpoints_of_spvnas_fit(cr: float, channels: list[int]) -> None:
    published = {n: torch.randn(s) for n, s in spvnas_state(channels, 19).items()}
    model = models.SPVCNN(4, 19, cr=cr)
    converted = convert_state(published, "torchsparse", "pumice", check=False)
    assert not converted.dropped
    model.load_state_dict(converted.tensors)  # all names, and no others
    layers = {n: m for n, m in model.named_modules() if isinstance(m, Convolution)}
    assert len(layers) == sum(name.endswith(".kernel") for name in published)
    for name, layer in layers.items():
        size = layer.window.numbers[2:5]
        common = layer.weight.reshape(*size, *layer.weight.shape[1:])
        kernel = from_common(LAYOUTS["torchsparse"], common)
        assert torch.equal(kernel, published[f"{name}.kernel"]), name


@pytest.mark.parametrize("cr", [0, -1, float("nan"), 0.01])
def test_factors_that_leave_nothing(cr: float) -> None:
    with pytest.raises(pumice.UserError, match="at least one channel"):
        models.SPVCNN(cr=cr)


def test_points_are_checked() -> None:
    with pytest.raises(pumice.UserError, match="batch index first"):
        models.PointTensor(torch.zeros(3, 3), torch.zeros(3, 4))
    with pytest.raises(pumice.UserError, match="a row for each point"):
        models.PointTensor(torch.zeros(3, 4), torch.zeros(2, 4))
    with pytest.raises(pumice.UserError, match=r"positions is an ndarray: torch.as_tensor\(\)"):
        models.PointTensor(torch.zeros(3, 4).numpy(), torch.zeros(3, 4))


def test_scans_and_arrays_as_points() -> None:
    scan, points = pumice.simulate(seed=1, beams=32), torch.zeros(3, 4)
    of = models.PointTensor.of
    for call, words in (
        (lambda: of(scan, size=0.1), r"points are a PointCloud: .*of\(torch.from_numpy\(scan.features\(\)\)"),
        (lambda: of(scan.features(), size=0.1), "points is an ndarray: torch.as_tensor"),
        (lambda: of(points, size=0.1, batch=[0, 0, 0]), "batch is a list"),
        (lambda: of(points, size=0.1, batch=torch.zeros(2)), r"batch has shape \(2,\): .* 3 points"),
        (lambda: of(points, size="0.1"), "size = '0.1': give metres"),
    ):
        with pytest.raises(pumice.UserError, match=words):
            call()
    assert len(of(torch.from_numpy(scan.features()), size=0.1)) == len(scan)


def test_points_in_metres(device: torch.device) -> None:
    points = (torch.randn(50, 5) * 4).to(device).requires_grad_()
    batch = torch.randint(0, 3, (50,), device=device)
    mine = models.PointTensor.of(points, size=[0.5, 0.25, 1.0], origin=[-8, 0, 1], batch=batch)
    assert mine.features is points and not mine.positions.requires_grad
    expected = (points[:, :3].cpu() - torch.tensor([-8.0, 0, 1])) / torch.tensor([0.5, 0.25, 1.0])
    assert torch.equal(mine.positions[:, 0], batch.float())
    torch.testing.assert_close(mine.positions[:, 1:].cpu(), expected)
    voxels = mine.voxels()
    assert voxels.batch_size == int(batch.max()) + 1
    cells = mine.positions.floor().int()
    assert {tuple(c) for c in voxels.indices.tolist()} == {tuple(c) for c in cells.tolist()}
    back = mine.to_voxels(voxels.coords)
    assert back.coords.is_same(voxels.coords)
    torch.testing.assert_close(back.features, voxels.features)
    with pytest.raises(pumice.UserError, match="metres above 0"):
        models.PointTensor.of(points, size=0)
    with pytest.raises(pumice.UserError, match="3 or more"):
        models.PointTensor.of(points[:, :2], size=1)
