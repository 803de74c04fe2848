"""Compiled graphs: every layer without a break, row counts being known only when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from conftest import close, random_sites, random_tensor, working_type

import pumice
from pumice import nn, ops

RELEASE = tuple(int(number) for number in torch.__version__.split(".")[:2])
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(RELEASE < (2, 11), reason="older compilers refuse extents without values"),
]


def layers() -> dict[str, Callable[[], torch.nn.Module]]:
    down = lambda: nn.Conv3d(4, 6, 2, 2)  # noqa: E731
    return {
        "SubMConv": lambda: nn.SubMConv3d(4, 6, 3),
        "Conv": lambda: nn.Conv3d(4, 6, 3, 2, 1),
        "Conv onto cells": lambda: nn.Conv3d(4, 6, 2, 2, outputs="cell"),
        "InverseConv": lambda: nn.Sequential(down(), nn.InverseConv3d(6, 4, 2, 2)),
        "ConvTranspose": lambda: nn.Sequential(down(), nn.ConvTranspose3d(6, 4, 3, 2, 1)),
        "GenerativeConvTranspose": lambda: nn.Sequential(
            down(), nn.GenerativeConvTranspose3d(6, 4, 3, 2, 1)
        ),
        "MaxPool": lambda: nn.MaxPool(2),
        "AvgPool": lambda: nn.AvgPool(3, 2, 1),
        "SumPool": lambda: nn.SumPool(2, outputs="cell"),
        "GlobalPool max": lambda: nn.Sequential(down(), nn.GlobalPool("max")),
        "GlobalPool average": lambda: nn.Sequential(down(), nn.GlobalPool("average")),
        "GlobalPool sum": lambda: nn.GlobalPool("sum"),
        "ToDense": lambda: nn.Sequential(down(), nn.ToDense()),
        "BatchNorm": lambda: nn.Sequential(down(), nn.BatchNorm(6)),
        "torch BatchNorm1d and ReLU": lambda: nn.Sequential(
            down(), torch.nn.BatchNorm1d(6), torch.nn.ReLU()
        ),
        "BatchNorm, mean of all": lambda: nn.Sequential(down(), nn.BatchNorm(6, momentum=None)),
        "SyncBatchNorm": lambda: nn.Sequential(down(), nn.SyncBatchNorm(6)),
        "LayerNorm": lambda: nn.Sequential(down(), nn.LayerNorm(6)),
        "InstanceNorm": lambda: nn.Sequential(down(), nn.InstanceNorm(6)),
        "Linear": lambda: nn.Sequential(down(), nn.Linear(6, 3)),
        "activations": lambda: nn.Sequential(down(), nn.GELU(), nn.LeakyReLU(), nn.PReLU(), nn.SiLU()),
        "what acts row for row": lambda: nn.Sequential(
            down(),
            nn.Dropout(0.0),
            nn.Sequential(nn.ELU(), nn.ReLU6(), nn.Sigmoid(), nn.Tanh()),
            nn.Identity(),
            nn.OnFeatures(torch.nn.Linear(6, 3)),
            torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()),
        ),
        "Residual": lambda: nn.Sequential(
            down(),
            nn.Residual(
                nn.Sequential(
                    nn.SubMConv3d(6, 6, 3, bias=False),
                    nn.BatchNorm(6),
                    nn.ReLU(),
                    nn.SubMConv3d(6, 6, 3, bias=False),
                    nn.BatchNorm(6),
                )
            ),
        ),
    }


class Function(torch.nn.Module):
    """What no layer does, as one."""

    def __init__(self, function: Callable[..., object], *modules: torch.nn.Module) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(modules)
        self.function = function

    def forward(self, x: pumice.SparseTensor) -> object:
        return self.function(x, *self.parts)


def u_net(x: pumice.SparseTensor, down, middle, up) -> pumice.SparseTensor:
    return pumice.cat([x, up(middle(down(x)))])


def item(x: pumice.SparseTensor, index: int) -> pumice.SparseTensor:
    mine = x.indices[:, 0] == index
    cells = x.indices[mine] * x.indices.new_tensor([0, 1, 1, 1])  # of a batch of its own
    return pumice.SparseTensor(cells, x.features[mine])


def positions(x: pumice.SparseTensor) -> torch.Tensor:
    """float32 [rows, 4]: points beside the sites, some below 0, of which several share a cell of 2.
    None lies on the side of a cell, where the last bit would decide: a compiler may fuse the two lines."""
    scaled = x.indices.float() * torch.tensor([1, 0.9, 0.7, 1.1], device=x.device)
    return scaled - torch.tensor([0, 0.33, 0.33, 0.33], device=x.device)


def voxelized(x: pumice.SparseTensor, reduction: str, **given: object) -> pumice.TensorVoxels:
    points, items = positions(x)[:, 1:], x.indices[:, 0]
    return pumice.voxelize(
        points, x.features, size=2.0, batch=items, reduction=reduction, **given
    )


def and_back(x: pumice.SparseTensor, layer: torch.nn.Module) -> torch.Tensor:
    voxels = voxelized(x, "mean", range=[0, 0, 0, 7, 8, 9], spatial_shape=[4, 4, 3], batch_size=2)
    return voxels.at_points(layer(voxels.tensor))


def point_branch(
    x: pumice.SparseTensor, layer: torch.nn.Module, batch_size: int | None = None
) -> torch.Tensor:
    points = pumice.models.PointTensor(positions(x), x.features)
    y = layer(points.voxels(batch_size))
    points = points.replace(points.from_voxels(y))
    return points.from_voxels(layer(points.to_voxels(y.coords)))


def functions() -> dict[str, Callable[[], torch.nn.Module]]:
    down, up = lambda: nn.Conv3d(4, 6, 2, 2), lambda: nn.InverseConv3d(6, 4, 2, 2)  # noqa: E731
    return {
        "U-net": lambda: Function(u_net, down(), nn.SubMConv3d(6, 6, 3), up()),
        "Cat and Add": lambda: Function(
            lambda x, cat, add: add(cat(x, x), cat(x, x)), nn.Cat(), nn.Add()
        ),
        "add": lambda: Function(lambda x, d, u: x + u(d(x), x), down(), up()),
        "two branches": lambda: Function(lambda x, a, b: a(x) + b(x), down(), down()),
        "cat of two branches": lambda: Function(
            lambda x, a, b: pumice.cat([a(x), b(x)]), down(), nn.Conv3d(4, 2, 2, 2)
        ),
        "union": lambda: Function(
            lambda x, a, b: ops.union_add(a(x), b(x)), down(), nn.Conv3d(4, 6, 3, 2)
        ),
        "union of the same": lambda: Function(
            lambda x, a, b: x + ops.union_add(b(a(x)), x), down(), up()
        ),
        "prune": lambda: Function(
            lambda x, c: c(ops.prune(x, x.features[:, 0] > 0)), nn.SubMConv3d(4, 6, 3)
        ),
        "interpolate": lambda: Function(
            lambda x, d: ops.interpolate(
                d(x).features, d(x).coords, x.indices * x.features.new_tensor([1, 0.4, 0.5, 0.3])
            ),
            down(),
        ),
        "from dense": lambda: Function(
            lambda x, c: c(pumice.SparseTensor.from_dense(x.dense())), nn.SubMConv3d(4, 6, 3)
        ),
        "dense of a box": lambda: Function(
            lambda x, d: d(x).dense(shape=[3, 4, 5], low=[1, 0, 0], crop=True), down()
        ),
        "a batch of two": lambda: Function(
            lambda x, c: c(pumice.collate([item(x, 0), item(x, 1)])), nn.SubMConv3d(4, 6, 3)
        ),
        "taken rows": lambda: Function(
            lambda x, d: ops.take_rows(d(x).features, x.indices[:, 1] - 1), down()
        ),
        **{
            f"reduced rows, {kind}": lambda kind=kind: Function(
                lambda x, d: ops.reduce_rows(d(x).features, d(x).indices[:, 1] - 1, 6, kind), down()
            )
            for kind in ("mean", "sum", "max", "first")
        },
        **{
            f"voxelize, {kind}": lambda kind=kind: Function(
                lambda x, c: c(voxelized(x, kind).tensor), nn.SubMConv3d(4, 6, 3)
            )
            for kind in ("mean", "first")
        },
        "voxelize in a box, and back": lambda: Function(and_back, nn.SubMConv3d(4, 6, 3)),
        "points beside voxels": lambda: Function(point_branch, nn.SubMConv3d(4, 4, 3)),
        "points in a batch of known size": lambda: Function(
            lambda x, c: point_branch(x, c, x.batch_size), nn.SubMConv3d(4, 4, 3)
        ),
        "new sites": lambda: Function(
            lambda x, c: c(pumice.SparseTensor(x.indices, x.features * 2)), nn.SubMConv3d(4, 6, 3)
        ),
    }


CASES = {**layers(), **functions()}


def numbers(result: object) -> torch.Tensor:
    return result.features if isinstance(result, pumice.SparseTensor) else result


def scans(device: torch.device) -> list[pumice.SparseTensor]:
    return [
        random_tensor(count=100 + 50 * seed, dtype=working_type(device), device=device, seed=seed)
        for seed in (1, 2, 3)
    ]


def outcome(run, net, x: pumice.SparseTensor) -> tuple[list, list]:
    """Values and gradients, and the running statistics afterwards."""
    torch.manual_seed(0)
    output = numbers(run(x))
    wanted = (x.features, *net.parameters())
    weights = torch.randn_like(output)
    gradients = torch.autograd.grad((output * weights).sum(), wanted, allow_unused=True)
    return [output, *gradients], [value.clone() for value in net.buffers()]


def nearly(left: torch.Tensor, right: torch.Tensor) -> None:
    close(left, right, 10000)


def check(net, compiled, xs: Iterable[pumice.SparseTensor], compare=nearly) -> None:
    for x in xs:
        before = [value.clone() for value in net.buffers()]
        expected, statistics = outcome(net, net, x)
        for value, old in zip(net.buffers(), before):
            value.copy_(old)
        found, mine = outcome(compiled, net, x)
        for a, b in zip(found, expected):
            assert (a is None) == (b is None)
            if a is not None:
                compare(a, b)
        for a, b in zip(mine, statistics):
            torch.testing.assert_close(a, b)


OTHERWISE_IN_EVALUATION = [name for name in CASES if "Norm" in name or name == "Residual"]


@pytest.mark.parametrize(
    "name, training",
    [(name, True) for name in CASES] + [(name, False) for name in OTHERWISE_IN_EVALUATION],
)
def test_layers_compile_without_a_graph_break(
    device: torch.device, name: str, training: bool
) -> None:
    net = CASES[name]().to(device, working_type(device)).train(training)
    torch._dynamo.reset()
    counted = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(net, backend=counted, fullgraph=True, dynamic=True)
    first, *others = scans(device)
    check(net, compiled, [first])
    graphs = counted.frame_count
    check(net, compiled, others)
    assert counted.frame_count == graphs  # the same one for all scans


@pytest.mark.parametrize("name", ["Residual", "torch BatchNorm1d and ReLU", "U-net", "MaxPool"])
def test_inference_is_fused_in_a_graph_too(device: torch.device, name: str) -> None:
    net = CASES[name]().to(device, working_type(device)).eval()
    for buffer in net.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    torch._dynamo.reset()
    targets: set[str] = set()

    def record(graph: torch.fx.GraphModule, inputs: object) -> object:
        targets.update(str(node.target) for node in graph.graph.nodes)
        return graph

    compiled = torch.compile(net, backend=record, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for x in scans(device):
            close(numbers(compiled(x)), numbers(net(x)), 1000)
    assert ("pumice.fused_convolution" in targets) == any("Norm" in type(m).__name__ for m in net.modules())


@pytest.mark.usefixtures("process_group")
def test_norms_over_processes(device: torch.device) -> None:
    for group in (None, torch.distributed.new_group([0])):
        net = CASES["SyncBatchNorm"]().to(device, working_type(device))
        for module in net.modules():
            if isinstance(module, nn.SyncBatchNorm):
                module.process_group = group
        torch._dynamo.reset()
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
        check(net, compiled, scans(device))


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_other_dimensions(device: torch.device, dimension: int) -> None:
    def of(name: str, *arguments: int) -> torch.nn.Module:
        return getattr(nn, f"{name}{dimension}d")(*arguments)

    net = nn.Sequential(of("SubMConv", 4, 6, 3), of("Conv", 6, 6, 2, 2), nn.MaxPool(2, 1))
    net.append(of("GenerativeConvTranspose", 6, 6, 2, 2)).append(nn.ToDense())
    type_ = working_type(device)
    net.to(device, type_)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    xs = [
        random_tensor(dimension, 7, count, dtype=type_, device=device, seed=count)
        for count in (40, 90)
    ]
    check(net, compiled, xs)


def test_graphs_may_break_anywhere(device: torch.device) -> None:
    """What one part made, a map or sites, goes on in eager calls and in the next part."""

    def run(x, down, up):
        x = pumice.SparseTensor(x.indices, x.features, batch_size=2)
        torch._dynamo.graph_break()
        found, coords = down.find(x, None)
        torch._dynamo.graph_break()
        y = ops.convolution(x.features, down.weight, found, down.bias)
        pooled = ops.pool(x.features, found, "max")
        torch._dynamo.graph_break()
        y = pumice.SparseTensor(coords, torch.cat([y, pooled], 1)[:, :6])
        return pumice.cat([x, up(y)])

    net = Function(run, nn.Conv3d(4, 6, 2, 2), nn.InverseConv3d(6, 4, 2, 2))
    net.to(device, working_type(device))
    torch._dynamo.reset()
    check(net, torch.compile(net, backend="aot_eager", dynamic=True), scans(device))


def compatible(name: str, device: torch.device) -> tuple[torch.nn.Module, Callable[[], object], str]:
    """A small network of another library's layers, its input, and what it calls features."""
    cells = random_sites(3, 16, 300).to(device)
    features = torch.randn(len(cells), 4, device=device)
    if name == "spconv":
        import pumice.compat.spconv.pytorch as spconv

        net = spconv.SparseSequential(
            spconv.SubMConv3d(4, 8, 3, padding=1, indice_key="same"),
            torch.nn.ReLU(),
            spconv.SparseConv3d(8, 8, 2, 2, indice_key="down"),
            spconv.SparseInverseConv3d(8, 4, 2, indice_key="down"),
        )
        return net, lambda: spconv.SparseConvTensor(features, cells, [16] * 3, 2), "features"
    if name == "MinkowskiEngine":
        import pumice.compat.minkowski as ME  # noqa: N812

        net = torch.nn.Sequential(
            ME.MinkowskiConvolution(4, 8, 3, dimension=3),
            ME.MinkowskiReLU(),
            ME.MinkowskiConvolution(8, 8, 2, stride=2, dimension=3),
            ME.MinkowskiConvolutionTranspose(8, 4, 2, stride=2, dimension=3),
        )
        return net, lambda: ME.SparseTensor(features, cells), "F"
    import pumice.compat.torchsparse as torchsparse
    import pumice.compat.torchsparse.nn as spnn

    net = torch.nn.Sequential(
        spnn.Conv3d(4, 8, 3), spnn.ReLU(), spnn.Conv3d(8, 8, 2, 2), spnn.Conv3d(8, 4, 2, 2, transposed=True)
    )
    return net, lambda: torchsparse.SparseTensor(features, cells), "feats"


@pytest.mark.parametrize("name", ["spconv", "MinkowskiEngine", "TorchSparse"])
def test_networks_of_other_libraries_run(device: torch.device, name: str) -> None:
    net, make, features = compatible(name, device)
    net.to(device)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", dynamic=True)
    found, expected = (getattr(run(make()), features) for run in (compiled, net))
    torch.testing.assert_close(found, expected)
    mine, theirs = (
        torch.autograd.grad(made.square().sum(), list(net.parameters())) for made in (found, expected)
    )
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def scores_of_points(x: pumice.SparseTensor, net: torch.nn.Module) -> torch.Tensor:
    return net(pumice.models.PointTensor(positions(x), x.features))


def alike(left: torch.Tensor, right: torch.Tensor) -> None:
    """After many layers, of which norms over few rows enlarge what float32 rounds."""
    tolerance = 1e-9 if left.dtype == torch.float64 else 1e-2
    assert (left - right).norm() <= tolerance * right.norm()


@pytest.mark.parametrize(
    "scores, training", [(lambda x, net: net(x), False), (scores_of_points, True)],
    ids=["sites in evaluation", "points in training"],
)  # fmt: skip
def test_spvcnn_is_one_graph(device: torch.device, scores, training: bool) -> None:
    model = pumice.models.SPVCNN(4, 5, cr=0.1, dropout=0.0)
    net = Function(scores, model).to(device, working_type(device)).train(training)
    torch._dynamo.reset()
    counted = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(net, backend=counted, fullgraph=True, dynamic=True)
    first, *others = [
        random_tensor(extent=48, count=count, dtype=working_type(device), device=device)
        for count in (200, 300, 150)
    ]
    check(net, compiled, [first], alike)
    graphs = counted.frame_count
    check(net, compiled, others, alike)
    assert counted.frame_count == graphs


@pytest.mark.parametrize("name", ["MinkUNet42", "CenterPointEncoder"])
def test_networks_are_one_graph(device: torch.device, name: str) -> None:
    if name == "MinkUNet42":
        net = pumice.models.MinkUNet42(4, 5, width_factor=0.1)
    else:
        net = torch.nn.Sequential(pumice.models.CenterPointEncoder(4), nn.ToDense())
    net.to(device).eval()
    cells = random_sites(3, 32, 400).to(device)
    features = torch.randn(len(cells), 4, device=device)
    x = pumice.SparseTensor(cells, features, spatial_shape=[48, 48, 41], batch_size=2)
    if name == "MinkUNet42":
        x = pumice.SparseTensor(cells, features)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    found, expected = numbers(compiled(x)), numbers(net(x))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    mine, theirs = (
        torch.autograd.grad(made.square().sum(), list(net.parameters())) for made in (found, expected)
    )
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3 * b.abs().max().item())


def has_compiler() -> bool:
    from torch._inductor import cpp_builder

    try:
        return bool(cpp_builder.get_cpp_compiler())
    except Exception:
        return False


@pytest.mark.parametrize("name", ["Residual", "U-net", "points beside voxels"])
def test_layers_compile_with_inductor(device: torch.device, name: str) -> None:
    if device.type == "cpu" and not has_compiler():
        pytest.skip("no C++ compiler here, which Inductor needs")
    net = CASES[name]().to(device, working_type(device))
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True, dynamic=True)
    check(net, compiled, scans(device))


def test_sites_that_differ_are_refused_when_the_graph_runs() -> None:
    net = Function(lambda x, a, b: a(x) + b(x), nn.Conv3d(4, 6, 2, 2), nn.Conv3d(4, 6, 3, 2, 1))
    net.double()
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    with pytest.raises(pumice.UserError, match="on different sites"):
        compiled(random_tensor())


def test_what_a_graph_returns_goes_on_outside_and_into_another(device: torch.device) -> None:
    type_ = working_type(device)
    down = nn.Conv3d(4, 6, 2, 2).to(device, type_)
    up = nn.InverseConv3d(6, 4, 2, 2).to(device, type_)
    torch._dynamo.reset()
    first = torch.compile(down, backend="aot_eager", fullgraph=True, dynamic=True)
    second = torch.compile(up, backend="aot_eager", fullgraph=True, dynamic=True)
    x = random_tensor(dtype=type_, device=device)
    expected = down(x)
    found = first(x)
    assert torch.equal(found.indices, expected.indices)
    assert found.coords.is_same(expected.coords)
    assert found.stride == (2, 2, 2) and found.batch_size == 2
    assert found.spatial_shape == expected.spatial_shape and len(found) == len(expected)
    close(found.dense(), expected.dense(), 100)
    expected.coords.traceable()
    for back in (up(found), second(found), second(expected.replace(features=found.features))):
        assert back.coords.is_same(x.coords)
        close((x + back).features, (x + up(expected)).features, 1000)


def test_sites_of_an_eager_layer_go_into_a_graph(device: torch.device) -> None:
    type_ = working_type(device)
    down = nn.Conv3d(4, 6, 2, 2).to(device, type_)
    x = random_tensor(dtype=type_, device=device)
    torch._dynamo.reset()
    for name in ("InverseConv3d", "ConvTranspose3d"):
        up = getattr(nn, name)(6, 4, 2, 2).to(device, type_)
        compiled = torch.compile(up, backend="aot_eager", fullgraph=True, dynamic=True)
        coarse = down(x)
        coarse.coords.traceable()
        found = compiled(coarse)
        assert found.coords.is_same(x.coords)
        close(found.features, up(coarse).features, 100)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(device: torch.device, rows: int) -> None:
    type_ = working_type(device)
    net = nn.Sequential(
        nn.SubMConv3d(4, 6, 3), nn.Conv3d(6, 6, 2, 2), nn.ReLU(), nn.InverseConv3d(6, 5, 2, 2)
    ).to(device, type_)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    cells = torch.full((rows, 4), -3, dtype=torch.int32, device=device)
    cells[:, 0] = 0
    features = torch.randn(rows, 4, dtype=type_, device=device).requires_grad_()
    check(net, compiled, [pumice.SparseTensor(cells, features, batch_size=1)])
    check(net, compiled, scans(device))


@pytest.mark.parametrize("rows", [0, 1])
def test_few_points(device: torch.device, rows: int) -> None:
    type_ = working_type(device)
    net = Function(point_branch, nn.SubMConv3d(4, 4, 3)).to(device, type_)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    cells = torch.zeros(rows, 4, dtype=torch.int32, device=device)
    features = torch.randn(rows, 4, dtype=type_, device=device).requires_grad_()
    check(net, compiled, [pumice.SparseTensor(cells, features, batch_size=1), *scans(device)])


@pytest.mark.parametrize("size", [2.0, 3, [1.5, 2, 2.5]])
def test_the_size_of_voxels_is_an_argument(device: torch.device, size) -> None:
    def run(points: torch.Tensor, size) -> tuple[torch.Tensor, torch.Tensor]:
        voxels = pumice.voxelize(points, size=size)
        return voxels.coordinates, voxels.features

    torch._dynamo.reset()
    compiled = torch.compile(run, backend="aot_eager", fullgraph=True, dynamic=True)
    for count in (50, 90):
        points = torch.randn(count, 5, device=device) * 4
        for found, expected in zip(compiled(points, size), run(points, size)):
            torch.testing.assert_close(found, expected)
    with pytest.raises(pumice.UserError, match="voxel size"):
        compiled(points, 0.0)


def test_the_dataflow_asked_for_is_in_the_graph() -> None:
    layer = nn.SubMConv3d(4, 6, 3).double()
    layer.dataflow = "no such"
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    x = random_tensor()
    for run in (layer, compiled):
        with pytest.raises(pumice.UserError, match="no such"):
            run(x)
    layer = nn.Conv3d(4, 6, 3, 2, dataflow="gather_gemm_scatter").double()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    check(layer, compiled, [x])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_its_type(device: torch.device, dtype: torch.dtype) -> None:
    net = CASES["Residual"]().to(device)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True, dynamic=True)
    x = random_tensor(dtype=torch.float32, device=device)
    with torch.autocast(device.type, dtype=dtype):
        found = compiled(x)
        expected = net(x)
    assert found.features.dtype == expected.features.dtype == dtype
    torch.testing.assert_close(found.features, expected.features, rtol=0.05, atol=0.05)


def test_what_a_graph_learns_late_it_refuses_late() -> None:
    """How many items a batch has is read off the sites when the graph runs."""

    def joined(cells: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return pumice.collate([pumice.SparseTensor(cells, features)]).indices

    torch._dynamo.reset()
    compiled = torch.compile(joined, backend="aot_eager", fullgraph=True, dynamic=True)
    cells = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]], dtype=torch.int32)
    features = torch.rand(2, 3)
    assert torch.equal(compiled(cells, features), cells)
    cells[1, 0] = 1
    with pytest.raises(pumice.UserError, match="one batch item each"):
        compiled(cells, features)
