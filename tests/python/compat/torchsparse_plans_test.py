"""Settings of TorchSparse's kernels, which become plans where they have a counterpart."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from conftest import random_sites, working_type
from torchsparse_state import switches

import pumice
from pumice import Plan, _C
from pumice.compat.torchsparse import SparseTensor
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F

KINDS = F.Dataflow


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    with switches("2.1"):
        yield


def tensor(device: torch.device) -> SparseTensor:
    cells = random_sites(3, 9, 300).to(device)
    features = torch.randn(len(cells), 4, device=device).to(working_type(device))
    return SparseTensor(features.requires_grad_(), cells)


def ran(layer: torch.nn.Module, x: SparseTensor) -> dict[str, Plan]:
    """The plans of a forward and a backward pass."""
    _C.record_plans(True)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            layer(x).feats.square().sum().backward()
        return dict(_C.recorded_plans_of_all())
    finally:
        _C.record_plans(False)


def layer(device: torch.device, config: Any = None, size: int = 3, stride: int = 1) -> torch.nn.Module:
    torch.manual_seed(3)
    return spnn.Conv3d(4, 8, size, stride, config=config).to(device, working_type(device))


def changed(**settings: Any) -> Any:
    """As code writes it: a copy of the default, in which some is other."""
    config = F.conv_config.get_default_conv_config().copy()
    config.update(settings)
    return config


WISHES = [
    ({"dataflow": KINDS.FetchOnDemand}, "fetch_on_demand", None, 1, 1),
    ({"dataflow": KINDS.GatherScatter}, "gather_gemm_scatter", None, 1, 1),
    ({"dataflow": KINDS.GatherScatter.value}, "gather_gemm_scatter", None, 1, 1),
    ({"ifsort": True}, "implicit_gemm", True, 1, 1),
    ({"ifsort": True, "split_mask_num": 2}, "implicit_gemm", True, 2, 1),
    ({"ifsort": True, "split_mask_num": 4, "split_mask_num_bwd": 2}, "implicit_gemm", True, 4, 2),
]


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("settings, dataflow, sorts, splits, splits_back", WISHES)
def test_settings_are_what_runs(
    device: torch.device, settings: Any, dataflow: str, sorts: bool | None, splits: int, splits_back: int,
    everywhere: bool,
) -> None:  # fmt: skip
    plain, x = layer(device), tensor(device)
    for size, stride in ((3, 1), (2, 2)):
        if everywhere:
            F.conv_config.set_global_conv_config(changed(**settings))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = layer(device, None if everywhere else changed(**settings), size, stride)
            plans = ran(made, x)
        for direction, parts in (("forward", splits), ("input_gradient", splits_back)):
            plan = plans[direction]
            assert plan.dataflow == dataflow and plan.splits == parts
            assert sorts is None or plan.sort_by_mask == sorts
        assert plans["weight_gradient"].dataflow == "sum_over_pairs"
        F.conv_config.clear_global_conv_config()
        plain = layer(device, None, size, stride)
        torch.testing.assert_close(made(x).feats, plain(x).feats, rtol=1e-3, atol=1e-4)


def test_what_is_written_out_is_a_wish_and_what_is_filled_up_is_none(device: torch.device) -> None:
    x, plain = tensor(device), layer(device)
    chosen = ran(plain, x)
    unsorted = ran(layer(device, {"dataflow": KINDS.ImplicitGEMM, "ifsort": False}), x)
    assert unsorted["forward"].dataflow == "implicit_gemm" and not unsorted["forward"].sort_by_mask
    for config in ({"kmap_mode": "hashmap"}, changed(kmap_mode="hashmap"), changed()):
        assert ran(layer(device, config), x) == chosen
        F.conv_config.set_global_conv_config(config)
        assert ran(plain, x) == chosen
    F.conv_config.set_global_conv_config({"ifsort": False})
    assert ran(plain, x)["forward"] == unsorted["forward"]
    F.conv_config.clear_global_conv_config()
    assert ran(plain, x) == chosen


def test_the_plan_is_of_the_size_of_the_scan_and_found_once(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pumice.compat.torchsparse.nn.functional.conv import plans

    looked = []
    find = plans.ops.candidates
    monkeypatch.setattr(plans.ops, "candidates", lambda *a: (looked.append(a), find(*a))[1])
    plans._found.clear()
    x = tensor(device)
    ran(layer(device), x)
    assert not looked
    made = layer(device, changed(ifsort=True))
    for _ in range(3):
        ran(made, x)
    assert len(looked) == 2
    few = SparseTensor(x.feats[:5].detach().requires_grad_(), x.coords[:5])
    ran(made, few)
    assert len(looked) == 4


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"dataflow": KINDS.CodedCSR}, "dataflow = CodedCSR has no counterpart here"),
        ({"dataflow": KINDS.FetchOnDemand, "FOD_fusion": False}, "FOD_fusion = False has no counterpart here"),
        ({"dataflow": KINDS.GatherScatter, "epsilon": 0.3}, "epsilon and mm_thresh have no counterpart here"),
        ({"ifsort": True, "split_mask_num": 6}, "split_mask_num = 6: offsets are cut into at most 4 parts here"),
    ],
)
def test_what_has_no_counterpart_is_said_once(settings: Any, said: str) -> None:
    x = tensor(torch.device("cpu"))
    made = layer(torch.device("cpu"), changed(**settings))
    with pytest.warns(UserWarning, match=said):
        plans = ran(made, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran(made, x)
    if settings.get("dataflow") is KINDS.CodedCSR:
        assert plans == ran(layer(torch.device("cpu")), x)
    if "split_mask_num" in settings:
        assert plans["forward"].splits == 4


WRONG: list[tuple[Any, str]] = [
    (5, "config = 5: give a dictionary"),
    ([("ifsort", True)], "config is a list: give a dictionary"),
    ({"dataflow": "GatherScatter"}, "dataflow = 'GatherScatter': give Dataflow.ImplicitGEMM, GatherScatter,"),
    ({"dataflow": None}, "dataflow = None: give Dataflow"),
    ({"kmap_mode": "grid"}, "kmap_mode = 'grid': give 'hashmap_on_the_fly' or 'hashmap'"),
    ({"downsample_mode": ["spconv"]}, "downsample_mode is a list: give 'spconv' or 'minkowski'"),
    ({"ifsort": True, "split_mask_num": "2"}, "split_mask_num = '2': give a whole number"),
    ({"split_mask_num_bwd": 0}, "split_mask_num_bwd = 0: give a whole number of at least 1"),
]


@pytest.mark.parametrize(("config", "said"), WRONG)
def test_a_configuration_of_wrong_values_is_refused_where_it_is_given(config: Any, said: str) -> None:
    x = tensor(torch.device("cpu"))
    weight = torch.ones(27, 4, 8)
    for take in (
        lambda: layer(torch.device("cpu"), config),
        lambda: F.conv3d(x, weight, 3, config=config),
        lambda: F.conv_config.set_global_conv_config(config),
        lambda: F.conv_config.keys_check(config),
    ):
        with pytest.raises(pumice.UserError, match=re.escape(said)):
            take()
    assert F.conv_config.get_global_conv_config() is None


def test_what_is_written_into_a_configuration_later_is_looked_at_too() -> None:
    x, config = tensor(torch.device("cpu")), changed()
    made = layer(torch.device("cpu"), config, 2, 2)
    for name, value in (("dataflow", "x"), ("kmap_mode", "x"), ("split_mask_num", "x")):
        before, config[name] = config[name], value
        with pytest.raises(pumice.UserError, match=f"{name} = 'x': give"):
            made(x)
        config[name] = before
    made(x)


def test_errors_of_configurations_are_those_that_code_for_torchsparse_catches() -> None:
    for config, kind in ((5, TypeError), ({"dataflow": "x"}, ValueError), ({"kmap_mode": "x"}, ValueError)):
        with pytest.raises(kind):
            F.conv_config.set_global_conv_config(config)
    with pytest.raises(AssertionError, match="conv_mode = 5: give a ConvMode"):
        F.conv_config.get_default_conv_config(conv_mode=5)
    assert not F.conv_config.get_default_conv_config(conv_mode=0).ifsort
    coords = tensor(torch.device("cpu")).coords
    for wrong in ({"dataflow": "x"}, {"downsample_mode": "x"}):
        with pytest.raises(pumice.UserError, match="'x': give"):
            F.build_kernel_map(coords, len(coords), **wrong)


def test_a_key_that_nothing_reads_is_asked_about_once_and_let_be() -> None:
    config = {"kmap_mod": "hashmap", "colour": 3}
    with pytest.warns(UserWarning) as seen:
        made = layer(torch.device("cpu"), config)
    assert [str(warning.message) for warning in seen] == [
        "config['kmap_mod'] is read by nothing: is 'kmap_mode' meant?",
        "config['colour'] is read by nothing: there are dataflow, ifsort, kmap_mode, downsample_mode, "
        "split_mask_num, split_mask_num_bwd, epsilon, mm_thresh, FOD_fusion",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(tensor(torch.device("cpu")))
        F.conv3d(tensor(torch.device("cpu")), made.kernel, 3, config=config)


def test_layers_with_settings_stay_in_their_chain(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    chains = []
    run = _C.chain_training
    monkeypatch.setattr(_C, "chain_training", lambda *a: (chains.append(1), run(*a))[1])
    first = layer(device, changed(dataflow=KINDS.FetchOnDemand))
    net = torch.nn.Sequential(first, spnn.BatchNorm(8), spnn.ReLU(True), spnn.Conv3d(8, 8, 3), spnn.BatchNorm(8))
    net.to(device, working_type(device))
    for _ in range(3):  # the first call computes at once
        _C.record_plans(True)
        net(tensor(device))
        forward = [plan for _, plan in _C.recorded_plans_of_all()]
        _C.record_plans(False)
        assert len(forward) == 2 and forward[0].dataflow == "fetch_on_demand"
    assert len(chains) == 2
    first._config = changed(dataflow=KINDS.GatherScatter)
    _C.record_plans(True)
    net(tensor(device))
    forward = [plan for _, plan in _C.recorded_plans_of_all()]
    _C.record_plans(False)
    assert forward[0].dataflow == "gather_gemm_scatter" and len(chains) == 3


def test_a_graph_leaves_settings_out() -> None:
    x = tensor(torch.device("cpu"))
    made = layer(torch.device("cpu"), changed(dataflow=KINDS.GatherScatter))
    compiled = torch.compile(lambda x: made(x).feats, backend="eager")
    torch.testing.assert_close(compiled(x), made(x).feats)
