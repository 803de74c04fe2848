"""Results come back in the shape and the type that operators make them in, whatever else has as many bytes."""

from __future__ import annotations

import itertools
import pathlib

import pytest
import torch
from conftest import random_sites, random_tensor

import pumice
from pumice import _C, nn, ops

HALVES = [torch.float16, torch.bfloat16]


def gradients(net: torch.nn.Module, x: pumice.SparseTensor) -> list[torch.Tensor]:
    y = net(x).features
    weights = torch.linspace(-1, 1, y.numel(), device=y.device).reshape(y.shape)
    return list(torch.autograd.grad((y.float() * weights).sum(), [x.features, *net.parameters()]))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.SubMConv3d(2, 19, 1),  # a weight of two half rows beside a bias of one wide row
        lambda: nn.Conv3d(1, 19, (2, 1, 1), stride=(2, 1, 1)),
        lambda: nn.SubMConv3d(2, 1, 1),
        lambda: nn.SubMConv3d(1, 3, 1, bias=False),
    ],
)
def test_results_of_as_many_bytes_under_autocast(device: torch.device, make, dtype) -> None:  # noqa: ANN001
    net = make().to(device)
    x = random_tensor(channels=net.in_channels, dtype=torch.float32, device=device)
    exact = gradients(net, x)
    with torch.autocast(device.type, dtype=dtype):
        made = gradients(net, x)
    for mine, theirs in zip(made, exact, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        assert (mine - theirs).norm() <= 8 * torch.finfo(dtype).eps * (1 + theirs.norm())


def line(rows: int, channels: int, dtype: torch.dtype, device: torch.device) -> pumice.SparseTensor:
    cells = torch.zeros(rows, 4, dtype=torch.int32)
    cells[:, 1] = torch.arange(rows)
    features = torch.randn(rows, channels).to(device, dtype).requires_grad_()
    return pumice.SparseTensor(cells.to(device), features, batch_size=1)


def test_sizes_that_coincide_in_any_type(device: torch.device) -> None:
    """Rows, channels and types of which many pairs of results have as many bytes: features of [rows, C] in
    half precision beside [C] or [K, C, C] in float32."""
    dtypes = [torch.float32, *HALVES] + ([] if device.type == "cuda" else [torch.float64])
    checked = 0
    for dtype, rows, cin, cout in itertools.product(dtypes, (2, 3, 4, 6), (1, 2, 3), (1, 2, 3, 13)):
        net = torch.nn.ModuleList([nn.SubMConv3d(cin, cout, 1), nn.BatchNorm(cout)]).to(device)
        net[0].to(dtype)
        if dtype == torch.float64:
            net[1].double()
        x = line(rows, cin, dtype, device)
        y = net[1](net[0](x), relu=True).features
        assert y.shape == (rows, cout) and y.dtype == dtype
        y.float().square().sum().backward()
        for tensor in (x.features, *net.parameters()):
            assert tensor.grad.shape == tensor.shape and tensor.grad.dtype == tensor.dtype
            assert tensor.grad.isfinite().all()
        checked += 1
    assert checked >= 144


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_results_are_tensors_of_pytorch(dtype: torch.dtype) -> None:
    """In the type and shape that operators make them in: none is a view of memory of the
    extension, which PyTorch cannot resize."""
    cells = random_sites(3, 8, 120)
    x = pumice.SparseTensor(cells, torch.randn(len(cells), 6).to(dtype), batch_size=2)
    layer = nn.SubMConv3d(6, 10, 3).to(dtype)
    weight, features, sites = layer.weight.detach(), x.features, x.coords.sites
    map = ops.submanifold_map(x.coords, layer.window)
    down, coords = ops.strided_map(x.coords, nn.Conv3d(1, 1, 2, 2).window, True)
    gradient = torch.randn(len(cells), 10).to(dtype)
    call = (1, False, False)
    kinds = (torch.float32, dtype)
    made: dict[str, object] = {
        "convolution": _C.convolution(features, weight, map, None, *call, None, None, None, 0),
        "input gradient": _C.convolution_input_gradient(gradient, weight, map, *call, None, None),
        "weight gradient": _C.convolution_weight_gradient(features, gradient, map, *call, None),
        "gradients": _C.convolution_gradients(
            features, weight, gradient, map, *call, None, None, True, True, True
        ),
        "max pool": _C.max_pool(features, down),
        "rows": _C.take_rows(features, torch.arange(len(cells), dtype=torch.int32)),
        "dense": _C.to_dense(features, sites, None, [8] * 3, False),
    }
    for kind in kinds:
        one, zero = (torch.full((6,), value, dtype=kind) for value in (1.0, 0.0))
        running = (zero.clone(), one.clone())
        forward = _C.batch_norm_training(features, one, zero, *running, None, 1e-5, 0.1, None, True, None)
        made[f"norm of {kind}"] = forward
        made[f"its gradient of {kind}"] = _C.batch_norm_training_gradient(
            features, features, one, *forward[1:], forward[0], True, None
        )
        made[f"fold of {kind}"] = _C.fold_batch_norm(zero, one, one, zero, one, 1e-5)
    # What is given is taken three times, so that gradients of it add up.
    chain = _C.Chain([(0, -1, 0, True, 1e-5, 0.1), (2, -1, 0, True, 1e-5, 0.1)])
    one, zero = (torch.full((6,), value, dtype=dtype) for value in (1.0, 0.0))
    learned = (layer.weight.detach()[:, :, :6].contiguous(), one, zero) * 2
    running = (zero.clone(), one.clone(), torch.tensor(0)) * 2
    given = (features, None, chain, (map, map), learned, (None, None))
    output, record = _C.chain_training(*given, running, False, False, True, True)
    made["chain"] = output
    of_features, _, *of_parameters = _C.chain_gradients(
        torch.randn_like(output), output, *given, record, False, False, True, False
    )
    made["gradients of a chain"] = (of_features, *of_parameters)
    for name, found in made.items():
        for index, one in enumerate(found if isinstance(found, tuple) else (found,)):
            assert one.untyped_storage().resizable(), f"{name}, result {index}, is a view"


def has_huge_pages(address: int) -> bool:
    """Whether the mapping that holds `address` is to have huge pages, as the system says."""
    inside = False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        first, _, _ = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            begin, end = (int(bound, 16) for bound in first.split("-"))
            inside = begin <= address < end
        elif inside and first == "VmFlags:":
            return "hg" in line.split()
    return False


@pytest.mark.skipif(
    not pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").exists(), reason="this system has no huge pages"
)
def test_large_results_on_the_cpu_lie_in_huge_pages() -> None:
    graph = pumice.Graph(torch.tensor([[0], [0]]), num_nodes=40_000)
    page = 2**21
    for result in (ops.spmm(graph, torch.ones(40_000, 64)), ops.spmm(graph, torch.ones(40_000, 64), reduce="max")):
        assert has_huge_pages((result.data_ptr() + page - 1) // page * page)
    assert ops.spmm(graph, torch.ones(40_000, 0)).shape == (40_000, 0)
