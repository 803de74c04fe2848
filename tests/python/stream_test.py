"""Streams of PyTorch: sites are made on one, layers run on another."""

from __future__ import annotations

import pytest
import torch
from conftest import NO_GPU, random_sites

import pumice
from pumice import _C, nn

CYCLES = 50_000_000  # some 30 ms of a GPU


def network() -> torch.nn.Module:
    torch.manual_seed(3)
    down = nn.Conv3d(8, 16, 2, stride=2)
    return torch.nn.ModuleList([nn.SubMConv3d(8, 8, 3), down, nn.SubMConv3d(16, 16, 3)])


def run(layers: torch.nn.Module, x: pumice.SparseTensor) -> pumice.SparseTensor:
    for layer in layers:
        x = layer(x)
    return x


@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
@pytest.mark.parametrize("trains", [False, True])
def test_layers_on_another_stream_than_the_sites_cuda(trains: bool) -> None:
    cells = random_sites(3, 40, 9000)
    features = torch.randn(len(cells), 8)
    layers = network()
    here = pumice.SparseTensor(cells, features.clone().requires_grad_(), batch_size=2)
    expected = run(layers, here)
    expected.features.sum().backward()
    wanted = [here.features.grad, *(p.grad.clone() for p in layers.parameters())]
    layers = layers.cuda()
    for _ in range(5):
        layers.zero_grad()
        x = pumice.SparseTensor(cells.cuda(), features.cuda().requires_grad_(trains), batch_size=2)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        torch.cuda._sleep(CYCLES)  # maps are built on the sites' stream, so late
        with torch.cuda.stream(side):
            output = run(layers, x)
            total = output.features.sum()
            if trains:
                total.backward()
        side.synchronize()
        rows = output.dense().cpu(), expected.dense()
        torch.testing.assert_close(*rows, rtol=1e-4, atol=1e-4)
        if trains:
            found = [x.features.grad, *(p.grad for p in layers.parameters())]
            for mine, theirs in zip(found, wanted, strict=True):
                scale = theirs.abs().max()
                torch.testing.assert_close(mine.cpu() / scale, theirs / scale, rtol=0, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
def test_small_blocks_are_kept_and_given_back_cuda() -> None:
    cells = random_sites(3, 40, 9000).cuda()
    features = torch.randn(len(cells), 8, device="cuda")
    layers = network().cuda()

    def step() -> torch.Tensor:
        x = pumice.SparseTensor(cells, features.clone().requires_grad_(), batch_size=2)
        run(layers, x).features.square().sum().backward()
        return x.features.grad

    expected = step()
    for _ in range(3):
        torch.testing.assert_close(step(), expected, rtol=1e-4, atol=1e-4)
        assert 0 < _C.kept_device_bytes() <= 64 << 20
        held = torch.cuda.memory_allocated()
        kept = _C.kept_device_bytes()
        _C.release_device_memory()
        assert _C.kept_device_bytes() == 0
        assert torch.cuda.memory_allocated() <= held - kept


@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
def test_blocks_of_a_graph_stay_its_own_cuda() -> None:
    """Calls between two replays take no memory that the graph still writes to."""
    stream = torch.cuda.Stream()  # of the sites too: a graph is made of one stream
    with torch.cuda.stream(stream), torch.no_grad():
        cells = random_sites(3, 40, 9000).cuda()
        x = pumice.SparseTensor(cells, torch.randn(len(cells), 8, device="cuda"), batch_size=2)
        layer = nn.SubMConv3d(8, 8, 3).cuda()
        expected = layer(x).features.clone()  # compiled, and the map is there
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            output = layer(x).features
        others = [layer(x.replace(features=torch.randn_like(x.features))).features for _ in range(3)]
        before = [other.clone() for other in others]
        graph.replay()
        torch.testing.assert_close(output, expected)
        for other, was in zip(others, before):
            assert torch.equal(other, was)


@pytest.mark.parametrize("what", ["sites", "layer"])
def test_tensors_without_memory_are_refused(what: str) -> None:
    cells = random_sites(3, 8, 50)
    features = torch.randn(len(cells), 4)
    with pytest.raises(ValueError, match="no memory"):
        if what == "sites":
            pumice.SparseTensor(cells.to("meta"), features.to("meta"))
        else:
            nn.SubMConv3d(4, 4, 3, device="meta")(pumice.SparseTensor(cells, features))


@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
def test_passes_without_gradients_take_the_blocks_of_those_before_cuda() -> None:
    cells = random_sites(3, 40, 30_000).cuda()
    features = torch.randn(len(cells), 64, device="cuda")  # 7 MB
    torch.manual_seed(0)
    norms = [torch.nn.BatchNorm1d(64) for _ in range(3)]
    net = nn.Sequential(*(layer for norm in norms for layer in (nn.SubMConv3d(64, 64, 3, bias=False), norm, torch.nn.ReLU())))
    net = net.cuda().eval()

    def asked() -> int:
        return torch.cuda.memory_stats()["allocation.large_pool.allocated"]

    def infer() -> tuple[torch.Tensor, int]:
        before = asked()
        with torch.no_grad():
            output = net(pumice.SparseTensor(cells, features, spatial_shape=[40] * 3, batch_size=2)).features
        return output, asked() - before

    expected, first = infer()
    for _ in range(2):
        output, later = infer()
        torch.testing.assert_close(output, expected)
    assert later < first, f"{later} large blocks of a later pass, {first} of the first"
    kept = _C.kept_device_bytes()
    assert 8 << 20 < kept <= (64 << 20) + torch.cuda.get_device_properties(0).total_memory // 64
    net.train()(pumice.SparseTensor(cells, features, spatial_shape=[40] * 3, batch_size=2)).features.sum().backward()
    assert _C.kept_device_bytes() <= 64 << 20, "a pass with gradients leaves large blocks of others where they are"
