"""Switches that bring spconv's own ways, off by default."""

from __future__ import annotations

import pytest
import torch
from conftest import random_sites, working_type

import pumice
import pumice.compat.spconv as spconv


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch):
    def on(name: str) -> None:
        assert getattr(spconv.constants, name) is False
        monkeypatch.setattr(spconv.constants, name, True)

    return on


def tensor(device: torch.device, channels: int = 4, count: int = 200) -> spconv.SparseConvTensor:
    cells = random_sites(3, 9, count).to(device)
    features = torch.randn(len(cells), channels, dtype=working_type(device)).to(device)
    return spconv.SparseConvTensor(features.requires_grad_(), cells, [9] * 3, 2)


def test_the_gradient_of_a_mean_is_multiplied(device: torch.device, switch) -> None:
    x = tensor(device)
    pool = spconv.SparseAvgPool3d(3, 2, 1, indice_key="p")
    own = pool(x)
    pairs, numbers = own.find_indice_pair("p").indice_pairs, own.find_indice_pair("p").indice_pair_num
    met = [
        (int(pairs[0, k, at]), int(pairs[1, k, at]))
        for k in range(27)
        for at in range(int(numbers[k]))
    ]
    grad = torch.randn_like(own.features)
    count = torch.zeros(len(grad)).tolist()
    for _, row in met:
        count[row] += 1
    for times in (False, True):
        if times:
            switch("AVG_POOL_GRADIENT_TIMES_COUNT")
        y = pool(x).features
        assert torch.equal(y, own.features)
        expected = torch.zeros_like(x.features)
        for i, row in met:
            expected[i] += grad[row] * count[row] if times else grad[row] / count[row]
        (found,) = torch.autograd.grad(y, x.features, grad)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_the_global_mean_of_the_first_channel(device: torch.device, switch) -> None:
    x = tensor(device)
    whole = spconv.SparseGlobalAvgPool()(x)
    switch("GLOBAL_AVG_POOL_FIRST_CHANNEL")
    assert torch.equal(spconv.SparseGlobalAvgPool()(x), whole[:, 0])


def test_evaluation_leaves_autocast_alone(device: torch.device, switch) -> None:
    cells = random_sites(3, 9, 200).to(device)
    features = torch.randn(len(cells), 8, device=device)
    x = spconv.SparseConvTensor(features, cells, [9] * 3, 2)
    layer = spconv.SubMConv3d(8, 16, 3).to(device).eval()
    exact = layer(x).features

    def types() -> list[torch.dtype]:
        with torch.autocast(device.type, torch.float16):
            return [layer.train(mode)(x).features.dtype for mode in (True, False)]

    assert types() == [torch.float16, torch.float16]
    switch("EVAL_IGNORES_AUTOCAST")
    assert types() == [torch.float16, torch.float32]
    with torch.autocast(device.type, torch.float16):
        assert torch.equal(layer.eval()(x).features, exact)
    layer.algo = spconv.ConvAlgo.Native  # which computes under autocast there, too
    assert types() == [torch.float16, torch.float16]


def test_what_spconv_refuses(device: torch.device, switch) -> None:
    x, empty = tensor(device), tensor(device, count=0)
    dtype = working_type(device)
    layer = spconv.SubMConv3d(4, 4, 3).to(device, dtype).eval()
    pool, coarse = spconv.SparseMaxPool3d(2, 2), spconv.SparseConv3d(4, 4, 1, 4).to(device, dtype)
    one = torch.tensor([[0, 2, 2, 2]], dtype=torch.int32, device=device)
    lost = spconv.SparseConvTensor(x.features[:1], one, [4] * 3, 1)
    timed = spconv.SparseConvTensor(x.features, x.indices, [9] * 3, 2, benchmark=True)
    calls = [
        (lambda: layer(empty), "no rows"),
        (lambda: pool(empty), "no rows"),
        (lambda: coarse(lost), "vanish"),
        (lambda: layer(x, add_input=x), "int8 only"),
        (lambda: x.select_by_index(torch.arange(2, device=device)), "raises in spconv"),
        (lambda: spconv.SubMConv3d(4, 4, 3, groups=2), "takes 1"),
        (lambda: layer(timed), "name it"),
        (lambda: spconv.ops.get_indice_pairs(
            one, 1, [4] * 3, spconv.ConvAlgo.Native, [1] * 3, [4] * 3, [0] * 3, [1] * 3, [0] * 3
        ), "vanish"),
    ]  # fmt: skip
    for call, _ in calls:
        call()
    switch("REFUSE_AS_SPCONV")
    for call, words in calls:
        with pytest.raises(pumice.UserError, match=words):
            call()
    with pytest.raises(AssertionError):
        layer(x, add_input=x)
    layer.algo = spconv.ConvAlgo.Native
    layer(x, add_input=x)


def test_what_a_benchmark_records(device: torch.device) -> None:
    x = tensor(device)
    timed = spconv.SparseConvTensor(x.features, x.indices, [9] * 3, 2, benchmark=True)
    conv = spconv.SparseConv3d(4, 6, 3, 2, 1, name="down").to(device, working_type(device))
    y = spconv.SparseMaxPool3d(2, 2, name="pool")(conv(timed))
    down, pool = y.benchmark_record["down"], y.benchmark_record["pool"]
    assert down["type"] == "SparseConvolution" and pool["type"] == "SparseMaxPool"
    assert down["params"] == {
        "kernel_size": [3] * 3, "stride": [2] * 3, "padding": [1] * 3, "dilation": [1] * 3,
        "output_padding": [0] * 3, "subm": False, "transposed": False, "input_channels": 4,
        "out_channels": 6,
    }  # fmt: skip
    assert pool["params"]["channels"] == 6
    assert down["num_points"] == [len(x.indices)] and down["num_out_points"] == pool["num_points"]
    assert pool["num_out_points"] == [len(y.indices)]
    assert all(len(r["time"]) == len(r["indice_gen_time"]) == 1 for r in (down, pool))
    assert all(r["time"][0] > 0 for r in (down, pool))
