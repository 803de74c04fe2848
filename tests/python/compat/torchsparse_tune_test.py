"""`torchsparse.utils.tune.tune`, by Pumice's tuner."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, os, sys, torch
import pumice
from pumice.compat import torchsparse
from pumice.compat.torchsparse import nn as spnn

torch.manual_seed(0)
net = torch.nn.Sequential(spnn.Conv3d(4, 8, 3), spnn.BatchNorm(8), spnn.ReLU(), spnn.Conv3d(8, 8, 2, 2))
net.train()
net[1].eval()  # frozen
before = {name: value.clone() for name, value in net.state_dict().items()}
cells = torch.unique(torch.randint(0, 12, (400, 3)), dim=0).int()
cells = torch.cat([torch.zeros_like(cells[:, :1]), cells], 1)
items = [{"input": torchsparse.SparseTensor(torch.randn(len(cells), 4), cells)} for _ in range(2)]
calls = []
def collect(item):
    calls.append(1)
    return item["input"]
torchsparse.tune(net, items, collect_fn=collect, save_dir=sys.argv[1], tune_tag="mine", **json.loads(sys.argv[2]))
assert net.training and net[3].training and not net[1].training
assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
assert all(parameter.grad is None for parameter in net.parameters())
x = torchsparse.SparseTensor(torch.randn(len(cells), 4), cells)
pumice._C.record_plans(True)
net(x).feats.sum().backward()
plans = pumice._C.recorded_plans_of_all()
print(json.dumps([len(calls), {key: plan.reason for key, plan in plans}]))
"""


def run(folder: Path, plans: str, **options: Any) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "saved"), json.dumps({"verbose": False, **options})],
        env={**__import__("os").environ, "PUMICE_PLANS": plans}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("with_backward", [False, True])
def test_what_was_tuned_is_used_and_taken_from_the_file_the_next_time(tmp_path: Path, with_backward: bool) -> None:
    calls, reasons = run(tmp_path, str(tmp_path / "first.sqlite"), tune_with_bwd=with_backward)
    assert calls == 2
    measured = [direction for direction, reason in reasons.items() if reason.startswith("measured on this machine")]
    assert "forward" in measured and (("input_gradient" in measured) == with_backward)
    table = json.loads((tmp_path / "saved" / "mine.json").read_text())
    assert table["format"] == "pumice plans" and len(table["plans"]) >= 2
    # Another store, as on another computer of the kind: the file has them.
    calls, reasons = run(tmp_path, str(tmp_path / "second.sqlite"), tune_with_bwd=with_backward)
    assert calls == 0
    assert reasons["forward"].startswith("measured on this machine")
    calls, _ = run(tmp_path, str(tmp_path / "second.sqlite"), tune_with_bwd=with_backward, force_retune=True)
    assert calls == 2


def test_inputs_keep_their_types() -> None:
    import collections

    import torch

    from pumice.compat.torchsparse.utils.tune import _fresh

    pair = collections.namedtuple("pair", "x labels")
    moved = _fresh({"a": pair(torch.ones(2), "name"), "b": [1, (2,)]}, torch.device("cpu"))
    assert type(moved["a"]) is pair and moved["a"].labels == "name" and moved["b"] == [1, (2,)]


def test_a_loader_without_samples_is_refused(tmp_path: Path) -> None:
    from pumice import UserError
    from pumice.compat import torchsparse

    with pytest.raises(UserError, match="data_loader has no items"):
        torchsparse.tune(torchsparse.nn.Conv3d(4, 8, 3), [], save_dir=str(tmp_path))


def test_settings_of_other_kernels_warn(tmp_path: Path) -> None:
    from pumice import UserError
    from pumice.compat import torchsparse

    with pytest.warns(UserWarning, match="dataflow_range"), pytest.raises(UserError):
        torchsparse.tune(torchsparse.nn.Conv3d(4, 8, 3), [], save_dir=str(tmp_path), dataflow_prune=True)


def test_what_it_cannot_take_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    import torch

    import pumice
    from pumice.compat import torchsparse
    from pumice.compat.torchsparse import nn as spnn

    cells = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]).int()
    x = torchsparse.SparseTensor(torch.ones(2, 4), cells)
    net = torch.nn.Sequential(spnn.Conv3d(4, 8, 3)).eval()
    passes: list[int] = []
    net.register_forward_hook(lambda *given: passes.append(1))
    (tmp_path / "file").write_text("")
    (tmp_path / "damaged.json").write_text("{}")
    for model, loader, more, text in (
        ("net", [x], {}, "model is a str: give a torch.nn.Module"),
        (net, x, {}, r"data_loader is a .*SparseTensor: give a list of samples, \[x\]"),
        (net, 3, {}, "data_loader is an int"),
        (net, [x], {"n_samples": -1}, "n_samples = -1: give a whole number of at least 1"),
        (net, [x], {"n_samples": 0}, "n_samples = 0"),
        (net, [x], {"collect_fn": 3}, "collect_fn is an int: give a function"),
        (net, [x], {"save_dir": str(tmp_path / "file")}, "save_dir = .*file' cannot be made"),
        (net, [x], {"save_dir": 3}, "save_dir is an int: give a name"),
        (net, [x], {"save_dir": str(tmp_path), "tune_tag": "damaged"}, "force_retune=True measures again"),
    ):
        with pytest.raises(pumice.UserError, match=text):
            torchsparse.tune(model, loader, **{"save_dir": str(tmp_path / "saved"), "verbose": False, **more})
    assert not passes
