"""Covers pumice.tune and pumice.candidates: what they measure, what they refuse, and what they leave behind."""

import os
import subprocess
import sys

import pytest
import torch

import pumice
from pumice import nn, ops


def scan(seed: int, points: int = 1500, channels: int = 4) -> pumice.SparseTensor:
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randint(-8, 8, (points, 3), generator=generator).unique(dim=0)
    coords = torch.cat([torch.zeros(len(cells), 1), cells], 1).int()
    return pumice.SparseTensor(coords, torch.randn(len(cells), channels, generator=generator))


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.SubMConv3d(4, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU(), nn.SubMConv3d(8, 8, 3)
    )


def square(output: pumice.SparseTensor, item: object) -> torch.Tensor:
    return output.features.square().mean()


def test_it_measures_every_convolution_of_inference_or_training():
    model = network().eval()
    x = scan(1)
    tuning = pumice.tune(model, [x, scan(2)], budget_s=1, store=False)
    assert [layer.problem for layer in tuning.layers] == [
        "forward f32 4>8 offsets 27", "forward f32 8>8 offsets 27",
    ]  # fmt: skip
    for layer in tuning.layers:
        names = [candidate["name"] for candidate in layer.candidates]
        assert layer.plan in names and layer.untuned in names and layer.reason
    assert tuning.summary in str(tuning) and tuning.stored == 0 and tuning.used_s > 0
    training = pumice.tune(model.train(), [(x, "labels")], loss=square, budget_s=1, store=False)
    directions = {layer.problem.split()[0] for layer in training.layers}
    assert directions == {"forward", "input_gradient", "weight_gradient"}


def test_the_model_is_as_before():
    model = network().train()
    x = scan(1)
    model(x)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [torch.randn_like(parameter) for parameter in model.parameters()]
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.grad = gradient.clone()
    state = torch.get_rng_state()
    pumice.tune(model, [x], loss=square, budget_s=0.2, store=False)
    pumice.candidates(model, x)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    for parameter, gradient in zip(model.parameters(), gradients):
        assert torch.equal(parameter.grad, gradient)


def test_what_it_cannot_tune_is_a_sentence():
    x = scan(1)
    for model, loader, more, text in [
        (network(), [x], {}, "there is no loss"),
        (network().eval(), [], {}, "no items"),
        (network().eval(), [torch.ones(3)], {}, "takes a sparse tensor"),
        (network().eval(), [x], {"scans": 0}, "scans = 0"),
        (network().eval(), [x], {"budget_s": -1}, "budget_s = -1"),
        ("net", [x], {}, "model is a str"),
        (network().eval(), x, {}, r"loader is a SparseTensor: give a list of inputs, \[x\]"),
        (network().eval(), 3, {}, r"loader is an int: give a list of inputs, \[x\], or a DataLoader"),
        (network().eval(), [x], {"budget_s": "a"}, "budget_s = 'a': give seconds"),
        (network().eval(), [x], {"budget_s": float("nan")}, "budget_s = nan: give seconds"),
        (network().eval(), [x], {"budget_s": True}, "budget_s = True: give seconds"),
        (network().eval(), [x], {"scans": 1.5}, "scans = 1.5: give a whole number of at least 1"),
        (network(), [x], {"loss": 3}, "loss is an int: give a function"),
        (nn.Sequential(nn.ReLU()).eval(), [x], {}, "nothing to tune"),
        (network().eval(), [scan(1, channels=5)], {}, "5 channels"),
    ]:
        with pytest.raises(pumice.UserError, match=text):
            pumice.tune(model, loader, store=False, **more)


def test_a_compiled_model_is_tuned_by_what_it_was_made_of():
    model = network().eval()
    compiled = object.__new__(pumice.CompiledModel)
    for call in (lambda: pumice.tune(compiled, [scan(1)], store=False), lambda: pumice.candidates(compiled, scan(1))):
        with pytest.raises(pumice.UserError, match="give what pumice.compile was given"):
            call()
    assert pumice.candidates(model, scan(1))


def test_passes_that_wait_for_other_processes_are_refused(monkeypatch):
    distributed = torch.distributed
    x = scan(1)
    layer = nn.SubMConv3d(4, 8, 3)
    synced = torch.nn.Sequential(layer, nn.SyncBatchNorm(8))
    pumice.tune(synced.train(), [x], loss=square, budget_s=0.01, store=False)  # alone it waits for nobody
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        wrapped = torch.nn.Sequential(torch.nn.parallel.DistributedDataParallel(layer))
        with pytest.raises(pumice.UserError, match="model.0 is wrapped for several processes.*before it is wrapped$"):
            pumice.tune(wrapped.eval(), [x], store=False)
        with pytest.raises(pumice.UserError, match="model is wrapped for several processes.*or model.module"):
            pumice.tune(wrapped[0].eval(), [x], store=False)
        monkeypatch.setattr(distributed, "get_world_size", lambda *group: 2)
        with pytest.raises(pumice.UserError, match="model.1 is a SyncBatchNorm in training"):
            pumice.tune(synced.train(), [x], loss=square, store=False)
        pumice.tune(synced.eval(), [x], budget_s=0.01, store=False)
    finally:
        distributed.destroy_process_group()


class MakesABuffer(torch.nn.Module):
    """Registers a buffer in its first pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.SubMConv3d(4, 8, 3)

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        if not hasattr(self, "seen"):
            self.register_buffer("seen", torch.ones(2))
        return self.layer(x)


def test_a_buffer_that_a_pass_makes_stays():
    for measured in (
        lambda model: pumice.tune(model, [scan(1)], budget_s=0.01, store=False),
        lambda model: pumice.candidates(model, scan(1)),
        lambda model: pumice.explain(model, scan(1)),
    ):
        model = MakesABuffer().eval()
        measured(model)
        assert torch.equal(model.seen, torch.ones(2))


def test_explain_leaves_nothing_behind_even_where_a_pass_fails():
    class Fails(torch.nn.Module):
        def __init__(self, fails: bool) -> None:
            super().__init__()
            self.net = network()
            self.fails = fails

        def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
            out = self.net(x)
            torch.rand(3)
            if self.fails:
                raise KeyError("broken")
            return out

    for fails in (False, True):
        model = Fails(fails).train()
        state, mean = torch.get_rng_state(), model.net[1].running_mean.clone()
        if fails:
            with pytest.raises(KeyError, match="broken"):
                pumice.explain(model, scan(1))
        else:
            assert pumice.explain(model, scan(1))
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(model.net[1].running_mean, mean)


def test_a_store_that_is_none_is_said_before_anything_is_measured(tmp_path):
    program = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import pumice
from tuning_test import network, scan
model = network().eval()
passes = []
model.register_forward_hook(lambda *given: passes.append(1))
try:
    pumice.tune(model, [scan(1)], budget_s=1)
except pumice.UserError as error:
    print(len(passes), error)
"""
    (tmp_path / "notes.txt").write_text("no database")
    environment = {**os.environ, "PUMICE_PLANS": str(tmp_path / "notes.txt")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 PUMICE_PLANS = ") and "it is no database" in done.stdout


def test_a_failure_in_a_pass_ends_it_with_that_error_and_frees_the_tuner():
    class Broken(torch.nn.Module):
        def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
            raise KeyError("broken")

    x = scan(1)
    with pytest.raises(KeyError, match="broken"):
        pumice.tune(Broken().eval(), [x], store=False)
    pumice.tune(network().eval(), [x], budget_s=0.1, store=False)


def test_ctrl_c_in_a_pass_ends_tuning():
    class Interrupted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.SubMConv3d(4, 8, 3)
            self.passes = 0

        def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
            self.passes += 1
            if self.passes > 2:
                raise KeyboardInterrupt
            return self.layer(x)

    model = Interrupted().eval()
    x = scan(1, points=4000)
    try:
        pumice.tune(model, [x], budget_s=20, store=False)
    except KeyboardInterrupt:
        assert model.passes == 3
    else:  # nothing was faster, so that the network was never compared
        assert model.passes <= 2


def test_a_stored_plan_is_what_runs_in_another_process(tmp_path):
    program = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import pumice
from tuning_test import network, scan
model, x = network().eval(), scan(1)
before = [layer["name"] for layer in pumice.candidates(model, x)]
tuning = pumice.tune(model, [x], budget_s=3)
tuned = [layer.plan for layer in tuning.layers]
after = pumice.candidates(model, x)
assert [layer.untuned for layer in tuning.layers] == before
if tuning.stored:
    assert [layer["name"] for layer in after] == tuned and all(layer["is_stored"] for layer in after)
print("|".join(layer["name"] for layer in after))
"""
    again = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import pumice
from tuning_test import network, scan
print("|".join(layer["name"] for layer in pumice.candidates(network().eval(), scan(1))))
"""
    environment = {**os.environ, "PUMICE_PLANS": str(tmp_path / "plans.sqlite")}
    said = [
        subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False
        )
        for text in (program, again)
    ]
    assert said[0].returncode == 0, said[0].stderr
    assert said[0].stdout == said[1].stdout


def test_plans_go_to_another_store_in_a_table(tmp_path):
    program = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import pumice
from tuning_test import network, scan
model, x = network().eval(), scan(1)
tuning = pumice.tune(model, [x], budget_s=20, store=False)
assert not any(layer["is_stored"] for layer in pumice.candidates(model, x))
tuning.save("plans.json")
assert pumice.load_plans("plans.json") == len(tuning.layers)
assert pumice.load_plans("plans.json") == 0
text = open("plans.json").read()
open("bad.json", "w").write(text.replace("fetch_on_demand", "nope").replace("implicit_gemm", "nope"))
try:
    pumice.load_plans("bad.json")
except pumice.UserError as error:
    assert "bad.json: plan 1: " in str(error), error
else:
    raise AssertionError("a plan that nobody can read was taken in")
after = pumice.candidates(model, x)
assert [layer["name"] for layer in after] == [layer.plan for layer in tuning.layers]
assert all(layer["is_stored"] for layer in after)
"""
    environment = {**os.environ, "PUMICE_PLANS": str(tmp_path / "plans.sqlite")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "plans.json").write_text("{}")
    with pytest.raises(pumice.UserError, match="no table of plans"):
        pumice.load_plans(tmp_path / "plans.json")
    nothing = pumice.tune(network().eval(), [scan(1)], budget_s=1e-6, store=False)
    with pytest.raises(pumice.UserError, match="nothing was measured to the end"):
        nothing.save(tmp_path / "empty.json")
    for call in (nothing.save, pumice.load_plans):
        with pytest.raises(pumice.UserError, match="path is an int: give the name of a file"):
            call(3)


def test_candidates_are_measured_when_asked():
    model = network().eval()
    x = scan(1)
    for layer in pumice.candidates(model, x):
        assert layer["name"] in [one["name"] for one in layer["candidates"]]
        assert all(one["measured_s"] is None for one in layer["candidates"])
    found = pumice.candidates(model, x, measure=True)
    assert all(one["measured_s"] > 0 for layer in found for one in layer["candidates"])
    assert found[0]["name"] in str(found)


def test_candidates_of_a_training_step_are_those_of_its_gradients_too():
    model = network().train()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    found = pumice.candidates(model, scan(1), measure=True, loss=square)
    assert {layer["problem"].split(" offsets")[0] for layer in found} == {
        "forward f32 4>8", "forward f32 8>8", "weight_gradient f32 8>8", "input_gradient f32 8>8",
        "weight_gradient f32 4>8",
    }  # fmt: skip
    assert all(one["measured_s"] > 0 for layer in found for one in layer["candidates"])
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    with pytest.raises(pumice.UserError, match="loss is an int: give a function"):
        pumice.candidates(model, scan(1), loss=3)
    with pytest.raises(pumice.UserError, match="what loss returned is None"):
        pumice.candidates(model, scan(1), loss=lambda output, item: None)


def test_operators_called_by_hand_are_tuned_too():
    class ByHand(torch.nn.Module):
        def forward(self, x: pumice.SparseTensor) -> torch.Tensor:
            window = nn.SubMConv3d(4, 8, 3).window
            return ops.convolution(x.features, torch.ones(27, 4, 8), ops.submanifold_map(x.coords, window))

    found = pumice.candidates(ByHand(), scan(1))
    assert [layer["problem"] for layer in found] == ["forward f32 4>8 offsets 27"]
