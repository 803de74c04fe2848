"""Plans that are given run, in layers alone, in chains and in graphs, and change no numbers."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from conftest import random_tensor, working_type

import pumice
from pumice import Plan, UserError, _C, nn, ops

DIRECTIONS = ("forward", "input_gradient", "weight_gradient")
TILES = '{"dataflow":"fetch_on_demand","tile_rows":512}'
TABLE = '{"dataflow":"implicit_gemm","tile_rows":64,"sort_by_mask":true}'
# How far results of other plans may be, of their norm: sums of a hundred products in another order, of numbers that a
# norm may have stretched; half precision rounds after each layer.
NEAR = {torch.float64: 1e-10, torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.2}

Ran = list[tuple[str, Plan]]


@contextlib.contextmanager
def recorded() -> Iterator[Ran]:
    """The plans that run inside, backward passes on a GPU included, which have threads of their own otherwise."""
    ran: Ran = []
    _C.record_plans(True)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            yield ran
        ran += _C.recorded_plans_of_all()
    finally:
        _C.record_plans(False)


def near(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
    distance = (mine.double() - theirs.double()).norm() / theirs.double().norm().clamp(min=1e-6)
    assert distance <= NEAR[mine.dtype]


def candidates_of(layer: nn.Convolution, x: pumice.SparseTensor) -> dict[str, list[Plan]]:
    map, _ = layer.find(x, None)
    found = {}
    for direction in DIRECTIONS:
        all = ops.candidates(x.features, layer.weight, map, direction, layer.groups)
        assert all[0] == (ops.plan_of(x.features, layer.weight, map, direction, layer.groups), 1.0)
        found[direction] = [plan for plan, _ in all]
    return found


def combinations(found: dict[str, list[Plan]]) -> list[dict[str, Plan]]:
    """Each plan of each direction in one of them, with other plans of the others."""
    most = max(map(len, found.values()))
    return [
        {name: plans[(at + move) % len(plans)] for move, (name, plans) in enumerate(found.items())}
        for at in range(most)
    ]


def step(net: torch.nn.Module, x: pumice.SparseTensor) -> tuple[list[torch.Tensor], Ran]:
    """Output and all gradients, and what ran for them."""
    with recorded() as ran:
        y = net(x).features
        weights = torch.linspace(-1, 1, y.numel(), device=y.device).to(y.dtype).reshape(y.shape)
        gradients = torch.autograd.grad((y * weights).sum(), [x.features, *net.parameters()])
    return [y.detach(), *gradients], ran


def kinds(device: torch.device) -> list[torch.dtype]:
    return [working_type(device), torch.float16, torch.bfloat16]


def block(dtype: torch.dtype, device: torch.device) -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.SubMConv3d(8, 16, 3, bias=False), nn.BatchNorm(16), nn.ReLU(),
        nn.SubMConv3d(16, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU(),
    ).to(device, dtype)  # fmt: skip


def test_a_plan_is_a_value() -> None:
    plan = Plan(TILES)
    assert plan.text == str(plan) == TILES and repr(plan) == "<Plan fetch_on_demand/512>"
    assert (plan.name, plan.dataflow, plan.reason) == ("fetch_on_demand/512", "fetch_on_demand", "given")
    assert Plan(TABLE).sort_by_mask and Plan(TABLE).splits == 1
    assert plan == Plan(' {"tile_rows": 512, "dataflow": "fetch_on_demand"}') != Plan(TABLE)
    assert plan != TILES and plan != None and len({plan, Plan(TILES), Plan(TABLE)}) == 2  # noqa: E711
    assert copy.deepcopy(plan) is plan is copy.copy(plan)
    x, layer = random_tensor(), nn.SubMConv3d(4, 8, 3).double()
    chosen = candidates_of(layer, x)["forward"][0]
    again = pickle.loads(pickle.dumps(chosen))
    assert again == chosen and again.reason == chosen.reason != "given"
    with pytest.raises(AttributeError):
        plan.text = TABLE


def test_what_is_no_plan_is_a_sentence() -> None:
    with pytest.raises(UserError, match="it names no dataflow; give the text of a plan"):
        Plan("{}")
    with pytest.raises(UserError, match="text = 3: give a str"):
        Plan(3)
    layer = nn.SubMConv3d(4, 8, 3, plan=Plan(TILES))
    for wrong, said in (
        (7, "plan is an int: give a pumice.Plan, its text, or a mapping"),
        ({"back": Plan(TILES)}, "plan names the direction 'back': there are forward, input_gradient"),
        ({"forward": 7}, "plan of the forward is an int: give a pumice.Plan"),
        ({"forward": "{}"}, "it names no dataflow"),
    ):
        with pytest.raises(UserError, match=said):
            layer.plan = wrong
        with pytest.raises(UserError, match=said):
            nn.Conv3d(4, 8, 3, plan=wrong)
    assert layer.plan == Plan(TILES)
    x = random_tensor(dtype=torch.float32)
    layer.plan = '{"dataflow":"sum_over_pairs"}'
    with pytest.raises(UserError, match="sum_over_pairs is of weight gradients alone; give one of candidates"):
        layer(x)
    layer.plan = {"weight_gradient": Plan(TILES)}
    with pytest.raises(UserError, match="a weight gradient is a sum over pairs and nothing else"):
        layer(x).features.sum().backward()
    map, _ = layer.find(x, None)
    with pytest.raises(UserError, match='direction = "back": there are forward, input_gradient and weight_gradient'):
        ops.candidates(x.features, layer.weight, map, "back")
    with pytest.raises(UserError, match="takes 4 input channels, but features have 3"):
        ops.plan_of(x.features[:, :3], layer.weight, map)


def test_a_plan_and_a_dataflow_are_a_sentence() -> None:
    said = "a plan and dataflow = 'implicit_gemm' are given: a plan names its own, so leave the dataflow out"
    with pytest.raises(UserError, match=said):
        nn.SubMConv3d(4, 8, 3, dataflow="implicit_gemm", plan=Plan(TILES))
    x = random_tensor(dtype=torch.float32)
    for net in (layer := nn.SubMConv3d(4, 8, 3, bias=False), nn.Sequential(layer, nn.BatchNorm(8))):
        layer.plan, layer.dataflow = {"weight_gradient": '{"dataflow":"sum_over_pairs"}'}, "implicit_gemm"
        with pytest.raises(UserError, match=said):
            net(x)
    map, _ = layer.find(x, None)
    with pytest.raises(UserError, match=said):
        ops.convolution_input_gradient(
            torch.ones(len(x), 8), layer.weight, map, dataflow="implicit_gemm", plan=TILES
        )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("make", [nn.SubMConv3d, nn.Conv3d])
def test_every_candidate_runs_in_a_layer(device: torch.device, make: Any, groups: int) -> None:
    for dtype in kinds(device):
        x = random_tensor(channels=8, dtype=dtype, device=device)
        layer = make(8, 16, 3, groups=groups).to(device, dtype)
        expected, _ = step(layer, x)
        for given in combinations(candidates_of(layer, x)):
            layer.plan = given
            assert layer.plan == given
            made, ran = step(layer, x)
            assert ran == list(given.items())
            for mine, theirs in zip(made, expected, strict=True):
                near(mine, theirs)


def test_every_candidate_runs_in_a_chain(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for name in ("chain_training", "chain_gradients", "chain_inference"):
        run = getattr(_C, name)
        monkeypatch.setattr(_C, name, lambda *a, run=run, name=name: (calls.append(name), run(*a))[1])
    for dtype in kinds(device):
        x = random_tensor(channels=8, dtype=dtype, device=device)
        net = block(dtype, device)
        first, last = net[0], net[3]
        expected, _ = step(net, x)
        evaluated = copy.deepcopy(net).eval()
        with torch.no_grad():
            expected_later = evaluated(x).features
        between = net[:3](x).detach()
        for at, (given, other) in enumerate(
            zip(combinations(candidates_of(first, x)), combinations(candidates_of(last, between)))
        ):
            first.plan, last.plan = given, other if at % 3 else None  # one link with a plan, one without
            calls.clear()
            made, ran = step(net, x)
            assert calls == ["chain_training", "chain_gradients"]
            assert [direction for direction, _ in ran] == [*DIRECTIONS[:1] * 2, *DIRECTIONS[:0:-1] * 2]
            assert [ran[i][1] for i in (0, 5, 4)] == list(given.values())
            if at % 3:
                assert [ran[i][1] for i in (1, 3, 2)] == list(other.values())
            for mine, theirs in zip(made, expected, strict=True):
                near(mine, theirs)
            evaluated[0].plan, evaluated[3].plan = first.plan, last.plan
            calls.clear()
            with torch.no_grad(), recorded() as ran:
                near(evaluated(x).features, expected_later)
            assert calls == ["chain_inference"]
            assert ran[0][1] == given["forward"] and (not at % 3 or ran[1][1] == other["forward"])


@pytest.mark.parametrize("frozen", [False, True])
def test_a_chain_notices_a_changed_plan(device: torch.device, frozen: bool) -> None:
    dtype = working_type(device)
    x = random_tensor(channels=8, dtype=dtype, device=device)
    net = block(dtype, device).eval()
    if frozen:
        nn.freeze(net)
    plans = candidates_of(net[0], x)["forward"]
    chosen = plans[0]
    with torch.no_grad():
        expected = net(x).features
        for plan in (plans[1], plans[-1], plans[-1], None, plans[2]):
            net[0].plan = plan
            for _ in range(2):
                with recorded() as ran:
                    near(net(x).features, expected)
                assert ran[0] == ("forward", plan or chosen)


def test_a_convolution_with_its_norm_and_a_bias_is_no_chain_and_has_its_plan(device: torch.device) -> None:
    dtype = working_type(device)
    x = random_tensor(channels=8, dtype=dtype, device=device)
    net = nn.Sequential(nn.SubMConv3d(8, 8, 3), nn.BatchNorm(8)).to(device, dtype).eval()
    net[0].plan = candidates_of(net[0], x)["forward"][-1]
    with torch.no_grad(), recorded() as ran:
        net(x)
    assert ran == [("forward", net[0].plan)]


def test_copies_keep_the_plan_and_state_dicts_have_none() -> None:
    given = {"forward": Plan(TILES), "weight_gradient": Plan('{"dataflow":"sum_over_pairs"}')}
    layer = nn.InverseConv3d(4, 8, 2, 2, plan=given)
    plain = nn.InverseConv3d(4, 8, 2, 2)
    assert layer.plan == given and plain.plan is None
    assert list(layer.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(layer.state_dict())
    assert plain.plan is None
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    copies = (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer)),
              torch.load(file, weights_only=False))  # fmt: skip
    for other in copies:
        assert other.plan == given
        other.plan = None
    assert layer.plan == given
    layer.plan = {"forward": Plan(TABLE), "input_gradient": None}
    assert layer.plan == Plan(TABLE)
    layer.plan = {}
    assert layer.plan is None
    state = plain.__dict__.copy()
    for name in ("_plans", "_plan_text"):  # as before there were plans
        del state[name]
    old = nn.InverseConv3d.__new__(nn.InverseConv3d)
    old.__setstate__(state)
    assert old.plan is None


def some(found: dict[str, list[Plan]]) -> list[dict[str, Plan]]:
    """One of each dataflow: compiling takes seconds."""
    all = combinations(found)
    return list({given["forward"].dataflow: given for given in all}.values())


def test_plans_are_in_compiled_networks(device: torch.device) -> None:
    dtype = working_type(device)
    x = random_tensor(channels=8, dtype=dtype, device=device)
    net = block(dtype, device)
    expected, _ = step(net, x)
    for given in some(candidates_of(net[0], x)):
        net[0].plan = given
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
        made, ran = step(compiled, x)
        assert [ran[0][1], ran[4][1], ran[5][1]] == list(given.values())
        for mine, theirs in zip(made, expected, strict=True):
            near(mine, theirs)
        evaluated = copy.deepcopy(net).eval()
        compiled = torch.compile(evaluated, backend="aot_eager", fullgraph=True)
        with torch.no_grad(), recorded() as ran:
            compiled(x)
        assert ran[0] == ("forward", given["forward"])


def test_a_graph_is_made_anew_for_another_plan() -> None:
    x = random_tensor(channels=8)
    layer = nn.SubMConv3d(8, 8, 3).double()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    for plan in (Plan(TILES), None, Plan(TABLE)):
        layer.plan = plan
        with recorded() as ran:
            compiled(x)
        assert ran[0][1] == (plan or ops.plan_of(x.features, layer.weight, layer.find(x, None)[0]))


def test_an_exported_program_has_the_plan() -> None:
    x = random_tensor(channels=8)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.SubMConv3d(8, 8, 3, plan=Plan(TABLE)).double()

        def forward(self, cells: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
            return self.layer(pumice.SparseTensor(cells, features, batch_size=2)).features

    net = Network()
    program = torch.export.export(net, (x.indices, x.features.detach()))
    with recorded() as ran:
        made = program.module()(x.indices, x.features.detach())
    assert ran == [("forward", Plan(TABLE))]
    near(made, net(x.indices, x.features.detach()))


@pytest.mark.parametrize("as_text", [False, True])
def test_operators_take_plans(device: torch.device, as_text: bool) -> None:
    dtype = working_type(device)
    x = random_tensor(channels=8, dtype=dtype, device=device)
    layer = nn.SubMConv3d(8, 16, 3, bias=False).to(device, dtype)
    map, _ = layer.find(x, None)
    found = candidates_of(layer, x)
    gradient = torch.randn(len(x), 16, device=device).to(dtype)
    calls = {
        "forward": lambda map, plan=None: ops.convolution(x.features, layer.weight, map, plan=plan),
        "input_gradient": lambda map, plan=None: ops.convolution_input_gradient(
            gradient, layer.weight, map, plan=plan
        ),
        "weight_gradient": lambda map, plan=None: ops.convolution_weight_gradient(
            x.features, gradient, map, plan=plan
        ),
    }
    for direction, call in calls.items():
        expected = call(map)
        plan = found[direction][-1]
        for given in (plan, {direction: plan}):
            if as_text:
                given = given.text if given is plan else {direction: plan.text}
            with recorded() as ran:
                near(call(map, given), expected)
            assert ran == [(direction, plan)]

        def in_a_graph(x: pumice.SparseTensor, plan: str, call: Any = call) -> torch.Tensor:
            return call(ops.submanifold_map(x.coords, layer.window), plan)

        with recorded() as ran:
            made = torch.compile(in_a_graph, backend="aot_eager", fullgraph=True)(x, plan.text)
            near(made, expected)
            made.sum().backward()  # by what is chosen
        assert ran[0] == (direction, plan) and len(ran) > 1


def test_second_derivatives_of_layers_with_plans() -> None:
    x = random_tensor(2, 4, 9, channels=2, batch=1)
    layer = nn.SubMConv2d(2, 2, 3, bias=False).double()
    map, _ = layer.find(x, None)
    plans = combinations(candidates_of(layer, x))[-1]

    def run(features: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return ops.convolution(features, weight, map, plan=plans)

    inputs = (x.features, layer.weight)
    assert torch.autograd.gradcheck(run, inputs) and torch.autograd.gradgradcheck(run, inputs)
    # Plans hold for the first derivative in a graph too.
    with recorded() as ran:
        torch.autograd.grad(run(*inputs).square().sum(), inputs, create_graph=True)
    assert ran == list(plans.items())


def test_second_derivatives_of_chains_with_plans() -> None:
    x = random_tensor(channels=8, count=60)
    net = block(torch.float64, torch.device("cpu"))

    def second() -> tuple[torch.Tensor, ...]:
        inputs = [x.features, *net.parameters()]
        first = torch.autograd.grad(net(x).features.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), inputs)

    expected = second()
    net[0].plan = combinations(candidates_of(net[0], x))[-1]
    for mine, theirs in zip(second(), expected, strict=True):
        near(mine, theirs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_rounds_weights_before_a_plan_that_takes_no_wide_ones(
    device: torch.device, dtype: torch.dtype
) -> None:
    x = random_tensor(channels=8, dtype=torch.float32, device=device)
    net = block(torch.float32, device)
    with torch.autocast(device.type, dtype):
        expected, _ = step(net, x)
        halved = x.replace(features=x.features.detach().to(dtype))
        for given in some(candidates_of(net[0], x)):
            assert given == {
                name: plan for name, plan in given.items() if plan in candidates_of(net[0], halved)[name]
            }
            net[0].plan = given
            made, ran = step(net, x)
            assert given.items() <= {(name, plan) for name, plan in ran}
            for mine, theirs in zip(made, expected, strict=True):
                distance = (mine.double() - theirs.double()).norm() / theirs.double().norm()
                assert distance <= NEAR[dtype]


def test_deterministic_and_tf32_are_read_or_given(device: torch.device) -> None:
    x = random_tensor(channels=8, dtype=torch.float32, device=device)
    layer = nn.SubMConv3d(8, 16, 3).to(device)
    map, _ = layer.find(x, None)
    call = (x.features, layer.weight, map, "weight_gradient", 1)
    torch.use_deterministic_algorithms(True)
    try:
        read = ops.plan_of(*call)
    finally:
        torch.use_deterministic_algorithms(False)
    assert read == ops.plan_of(*call, True)
    assert (read == ops.plan_of(*call)) == (device.type == "cpu")
    assert ops.plan_of(*call, tf32=False) == ops.plan_of(*call)
