"""torch.export: a network as a program of plain coordinates and features, run on other scans."""

from __future__ import annotations

import io

import pytest
import torch
from conftest import close, random_tensor, working_type

import pumice
from pumice import nn

RELEASE = tuple(int(number) for number in torch.__version__.split(".")[:2])
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(RELEASE < (2, 11), reason="older compilers refuse extents without values"),
]


class Classifier(torch.nn.Module):
    """Down, up, and one row of scores for each batch item."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.SubMConv3d(4, 8, 3, bias=False),
            nn.BatchNorm(8),
            nn.ReLU(),
            nn.Conv3d(8, 8, 2, 2, bias=False),
            torch.nn.BatchNorm1d(8),
            torch.nn.ReLU(),
        )
        self.up = nn.InverseConv3d(8, 6, 2, 2)
        self.pool = nn.GlobalPool("average")

    def forward(self, coords: torch.Tensor, features: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = pumice.SparseTensor(coords, features)
        y = self.up(self.down(x))
        return y.features, self.pool(y)


def export(net: torch.nn.Module, x: pumice.SparseTensor, strict: bool) -> torch.export.ExportedProgram:
    rows = torch.export.Dim.AUTO
    return torch.export.export(
        net, (x.indices, x.features), dynamic_shapes=({0: rows}, {0: rows}), strict=strict
    )


@pytest.mark.parametrize("strict", [True, False])
def test_a_network_is_exported(device: torch.device, strict: bool) -> None:
    type_ = working_type(device)
    net = Classifier().to(device, type_).eval()
    net.down[1].running_mean.uniform_()
    program = export(net, random_tensor(dtype=type_, device=device), strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for seed, batch in ((1, 3), (2, 1), (3, 2)):
        x = random_tensor(
            count=150 * seed, batch=batch, dtype=type_, device=device, seed=seed
        )
        cells = x.indices - x.indices.new_tensor([0, 4, 4, 4])  # negative ones too
        for run in (program.module(), loaded):
            for mine, expected in zip(run(cells, x.features), net(cells, x.features)):
                close(mine, expected, 1000)


class OfPoints(torch.nn.Module):
    """Scores of points, through the voxels that they are in and those around."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.ReLU(), nn.SubMConv3d(8, 3, 3))

    def forward(self, points: torch.Tensor, batch: torch.Tensor) -> tuple[torch.Tensor, ...]:
        voxels = pumice.voxelize(points, size=0.5, batch=batch)
        among = pumice.models.PointTensor.of(points, size=0.5, batch=batch)
        y = self.net(voxels.tensor)
        return voxels.at_points(y), among.from_voxels(y), among.to_voxels(y.coords).features


@pytest.mark.parametrize("strict", [True, False])
def test_a_network_of_points_is_exported(device: torch.device, strict: bool) -> None:
    net = OfPoints().to(device, working_type(device)).eval()

    def scan(count: int, items: int) -> tuple[torch.Tensor, torch.Tensor]:
        points = torch.randn(count, 4, dtype=working_type(device)) * 2
        return points.to(device), torch.randint(0, items, (count,)).to(device)

    rows = torch.export.Dim.AUTO
    exported = torch.export.export(
        net, scan(100, 2), dynamic_shapes=({0: rows}, {0: rows}), strict=strict
    )
    run = exported.module()
    for given in (scan(100, 2), scan(40, 3), scan(300, 1)):
        for mine, expected in zip(run(*given), net(*given), strict=True):
            close(mine, expected, 1000)


def test_an_exported_network_trains(device: torch.device) -> None:
    type_ = working_type(device)
    net = Classifier().to(device, type_)
    x = random_tensor(dtype=type_, device=device)
    trained = export(net, x, strict=False).module()
    other = random_tensor(count=500, dtype=type_, device=device, seed=4)
    outcomes = []
    for run in (trained, net):
        rows, items = run(other.indices, other.features)
        loss = rows.square().mean() + items.sum()
        outcomes.append(torch.autograd.grad(loss, list(run.parameters())))
    for mine, expected in zip(*outcomes):
        close(mine, expected, 1000)


@pytest.mark.parametrize("relu", [True, False])
def test_gradients_may_be_wanted_after_the_export(device: torch.device, relu: bool) -> None:
    """Of what was folded into one operator, since nothing wanted a gradient then."""
    type_ = working_type(device)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            body = [nn.SubMConv3d(4, 4, 3), nn.BatchNorm(4), nn.ReLU(), nn.SubMConv3d(4, 4, 3, groups=2),
                    torch.nn.BatchNorm1d(4)]  # fmt: skip
            self.net = nn.Residual(nn.Sequential(*body)) if relu else nn.Sequential(*body)

        def forward(self, coords: torch.Tensor, features: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return (self.net(pumice.SparseTensor(coords, features)).features,)

    net = Net().to(device, type_).eval()
    for parameter in net.parameters():
        torch.nn.init.uniform_(parameter, 0.1, 1)
        parameter.requires_grad_(False)
    x = random_tensor(dtype=type_, device=device).detach()
    program = export(net, x, strict=False)
    assert any("fused_convolution" in str(node.target) for node in program.graph.nodes)
    trained = program.module()
    x.features.requires_grad_()
    outcomes = []
    for run in (trained, net):
        for parameter in run.parameters():
            parameter.requires_grad_()
        (rows,) = run(x.indices, x.features)
        weights = torch.linspace(-1, 1, rows.numel(), dtype=type_, device=device).reshape(rows.shape)
        wanted = [x.features, *dict(sorted(run.named_parameters())).values()]
        outcomes.append([rows, *torch.autograd.grad((rows * weights).sum(), wanted)])
    for mine, expected in zip(*outcomes, strict=True):
        scale = expected.abs().max().clamp(min=1)
        close(mine / scale, expected / scale, 10_000)


def test_an_exported_network_refuses_what_the_eager_one_does() -> None:
    net = Classifier().double().eval()
    program = export(net, random_tensor(), strict=False).module()
    twice = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 3]], dtype=torch.int32)
    with pytest.raises(pumice.UserError, match="row"):
        program(twice, torch.zeros(2, 4, dtype=torch.float64))


def test_onnx_and_torchscript_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, features = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]], dtype=torch.int32), torch.randn(2, 4)

    class Scores(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.SubMConv3d(4, 8, 3)

        def forward(self, coords: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
            return self.layer(pumice.SparseTensor(coords, features)).features

    model = Scores().eval()
    with pytest.raises(pumice.UserError, match="ONNX and TorchScript have no sparse tensors"):
        torch.jit.trace(model, (cells, features))
    # As torch.onnx.export exports, in both of its ways.
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    for strict in (False, True):
        with pytest.raises(Exception, match="use torch.export, or run the network in C"):
            torch.export.export(model, (cells, features), strict=strict)
    monkeypatch.undo()
    assert torch.export.export(model, (cells, features)).module()(cells, features).shape == (2, 8)
