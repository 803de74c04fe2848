"""Which models can be compiled on a GPU: those of other libraries, those that make their sparse tensor themselves, and
those that are refused, by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from planned_flow_test import Building, builders, features_of, foreign
from planned_test import cuda, expect_same, of_model, passes, scan, settle, unet

import pumice
from pumice import nn


@cuda
def test_models_written_for_spconv_cuda() -> None:
    from pumice.compat import spconv

    def block(cin: int, cout: int, key: str) -> Any:
        return spconv.SparseSequential(
            spconv.SubMConv3d(cin, cout, 3, bias=False, indice_key=key), torch.nn.BatchNorm1d(cout), torch.nn.ReLU()
        )

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = block(4, 16, "a")
            self.down = spconv.SparseConv3d(16, 32, 2, 2, bias=False, indice_key="down")
            self.two = block(32, 32, "b")
            self.up = spconv.SparseInverseConv3d(32, 16, 2, indice_key="down")

        def forward(self, x: Any) -> Any:
            fine = self.one(x)
            coarse = self.two(self.down(fine))
            up = self.up(coarse)
            return up.replace_feature(torch.cat([up.features, fine.features], 1)), coarse

    net = settle(Net()).cuda()
    fast = pumice.compile(net)
    for seed in range(6):
        cells, features = scan(4000 - seed, seed, "cuda")
        x = spconv.SparseConvTensor(features, cells, [64] * 3, 2)
        up, coarse = fast(x)
        with torch.no_grad():
            expected_up, expected_coarse = net(x)
        exact = coarse.exact() if isinstance(coarse, pumice.CapacityTensor) else coarse
        assert type(up) is type(exact) is spconv.SparseConvTensor
        expect_same([up.indices, up.features], [x.indices, expected_up.features])
        expect_same([exact.indices, exact.features], [expected_coarse.indices, expected_coarse.features])


@cuda
@pytest.mark.parametrize("library", ["spconv", "torchsparse", "minkowski"])
def test_tensors_of_other_libraries_cuda(library: str) -> None:
    net, make, part = foreign()[library]
    settle(net).cuda()
    fast = pumice.compile(net)
    for seed in range(6):
        cells, features = scan(4000 - 50 * seed, seed, "cuda")
        made = fast(make(cells, features))
        with torch.no_grad():
            expected = net(make(cells, features))
        assert type(made) is type(expected)
        torch.testing.assert_close(part(made), part(expected), rtol=1e-3, atol=1e-3)
    assert fast.bytes > 0


@cuda
@pytest.mark.parametrize("name", ["pumice", "declared", "spconv", "torchsparse"])
def test_models_that_make_their_sparse_tensor_themselves_cuda(name: str) -> None:
    make, body = builders()[name]
    net = Building(make, settle(body)).cuda().eval()
    fast = pumice.compile(net, input=lambda x: (x.indices, x.features))
    grid: dict[str, Any] = {"batch_size": 2, **({"spatial_shape": [20_000] * 3} if name == "spconv" else {})}
    for seed in range(6):
        cells, features = scan(4000 - 50 * seed, seed, "cuda")
        made = fast(cells, features, **grid)
        with torch.no_grad():
            expected = net(cells, features)
        torch.testing.assert_close(features_of(made), features_of(expected), rtol=1e-3, atol=1e-3)
    assert fast.bytes > 0


@cuda
def test_what_waits_is_refused_by_name_and_leaves_all_usable_cuda() -> None:
    class Counting(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.replace(features=x.features * float(x.features[0, 0] > -1e9))

    net = nn.Sequential(nn.SubMConv3d(4, 8, 3), Counting()).cuda().eval()
    fast = pumice.compile(net)
    given = scan(4000, 1, "cuda")
    for _ in range(2):
        fast(*given, batch_size=2)
    for _ in range(2):
        with pytest.raises(pumice.UserError, match=r"'1' \(Counting\) cannot be recorded"):
            fast(*given, batch_size=2)
    expect_same(pumice.compile(net, eager=True)(*given, batch_size=2), of_model(net, *given))
    other = unet().cuda()
    fast = pumice.compile(other)
    passes(fast, [given])
    expect_same(fast(*given, batch_size=2), of_model(other, *given))


@cuda
def test_sites_that_are_pruned_are_refused_by_name_cuda() -> None:
    class Pruning(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[x.features[:, 0] > 0]

    net = nn.Sequential(nn.SubMConv3d(4, 8, 3), Pruning()).cuda().eval()
    fast = pumice.compile(net)
    given = scan(4000, 1, "cuda")
    for _ in range(2):
        fast(*given, batch_size=2)
    with pytest.raises(pumice.UserError, match=r"'1' \(Pruning\) cannot be recorded"):
        fast(*given, batch_size=2)


@cuda
def test_modules_that_mix_rows_are_refused_by_name_cuda() -> None:
    class Centred(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.replace(features=x.features - x.features.mean(0))

    given = scan(4000, 1, "cuda")
    for body, name in (
        (Centred(), r"module '1' \(Centred\)"),
        (nn.Sequential(nn.ReLU(), Centred()), r"module '1.1' \(Centred\)"),
    ):
        fast = pumice.compile(settle(nn.Sequential(nn.SubMConv3d(4, 8, 3), body, nn.SubMConv3d(8, 8, 3))).cuda())
        with pytest.raises(pumice.UserError, match=f"{name} cannot be recorded.*no numbers"):
            fast.plan(*given, batch_size=2)
    aware = settle(nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.InstanceNorm(8), nn.GlobalPool("max"))).cuda()
    fast = pumice.compile(aware)
    for seed in range(5):
        given = scan(4000 - 50 * seed, seed, "cuda")
        expect_same(fast(*given, batch_size=2), of_model(aware, *given))
