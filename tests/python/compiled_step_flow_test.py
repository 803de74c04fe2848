"""What compiled steps do from call to call, with graphs that are pretended on the CPU (pretended_step.py): the curves of
a loop written by hand, steps that change nothing, changes that are noticed, and what cannot be recorded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pretended_step
import pytest
import torch
import torch.utils.checkpoint
from compiled_step_test import CLASSES, expect_same_bits, scan, state_of

import pumice
import pumice.compat.spconv as spconv
from pumice import losses, nn
from pumice.planned.training import check_recordable
from pumice.planned.undo import Undo


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pretended_step.use_counts(monkeypatch)
    yield


def network(seed: int = 0, head: torch.nn.Module | None = None) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(  # which calls each module, so that hooks see it
        nn.SubMConv3d(4, 8, 3, bias=False), nn.BatchNorm(8), nn.ReLU(), nn.Conv3d(8, 8, 2, stride=2),
        nn.InverseConv3d(8, 8, 2, stride=2), nn.LayerNorm(8), nn.Linear(8, CLASSES) if head is None else head,
    )  # fmt: skip


MAKERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "fused AdamW": lambda p: torch.optim.AdamW(p, lr=2**-7, fused=True),
    "fused SGD": lambda p: torch.optim.SGD(p, lr=2**-4, momentum=0.875, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=2**-7, amsgrad=True, foreach=False),
    "SGD": lambda p: torch.optim.SGD(p, lr=2**-4, momentum=0.875, weight_decay=2**-8, foreach=False),
}


def made(name: str = "fused AdamW", scale: float | None = None, **options: Any) -> tuple[Any, ...]:
    net = network()
    optimizer = MAKERS[name](net.parameters())
    scaler = None if scale is None else torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3)
    step = pretended_step.compile_step(net, losses.cross_entropy, optimizer, scaler=scaler, **options)
    return net, optimizer, scaler, step


def trained(step: Any, turns: int, first: int = 0) -> list[torch.Tensor]:
    return [step(*scan(turn, 40 + 3 * turn), batch_size=2) for turn in range(first, first + turns)]


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("scale", [None, 2.0**10])
@pytest.mark.parametrize("name", list(MAKERS))
def test_curves_are_those_of_a_loop_written_by_hand(name: str, scale: float | None, eager: bool) -> None:
    net, optimizer, scaler, step = made(name, scale, clip_norm=0.5, eager=eager)
    other = copy.deepcopy(net)
    by_hand = MAKERS[name](other.parameters())
    ordinary = pumice.compile_step(
        other, losses.cross_entropy, by_hand, clip_norm=0.5,
        scaler=None if scale is None else torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3),
    )  # fmt: skip
    schedules = [torch.optim.lr_scheduler.ExponentialLR(one, 0.5**0.125) for one in (optimizer, by_hand)]
    for turn in range(16):
        given = scan(turn, 40 + 3 * turn)
        torch.testing.assert_close(step(*given, batch_size=2), ordinary(*given, batch_size=2), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(step.grad_norm, ordinary.grad_norm, rtol=1e-2, atol=1e-4)
        for schedule in schedules:
            schedule.step()
    for one, another in zip(state_of(net, optimizer), state_of(other, by_hand)):
        torch.testing.assert_close(one, another, rtol=1e-2, atol=2e-3)
    assert step.recordings == (0 if eager else 1), "schedules are followed without another recording"
    assert isinstance(optimizer.param_groups[0]["lr"], float)
    assert int(step.exceeded) == int(step.overflows) == 0
    assert int(net[1].num_batches_tracked) == 16, "what gets a bucket ready is not counted"
    assert all(parameter.grad is None for parameter in net.parameters())


def everything(net: Any, optimizer: Any, scaler: Any, step: Any) -> list[torch.Tensor]:
    numbers = [] if scaler is None else [scaler._scale, scaler._growth_tracker]
    return [tensor.clone() for tensor in (*state_of(net, optimizer), *numbers, step.overflows)]


@pytest.mark.parametrize("scale", [None, 2.0**10])
@pytest.mark.parametrize("name", list(MAKERS))
def test_a_step_beyond_its_room_changes_nothing(name: str, scale: float | None) -> None:
    net, optimizer, scaler, step = made(name, scale, clip_norm=0.5)
    trained(step, 5)
    before = everything(net, optimizer, scaler, step)
    recorder = step._recorder
    recorder.text, recorder.host_knows = "voxels: 7 needed, capacity 5", False
    for turn in range(3):  # the host runs ahead
        assert step(*scan(turn), batch_size=2).isnan()
        expect_same_bits(everything(net, optimizer, scaler, step), before)
    assert int(step.exceeded) == 3
    recorder.host_knows = True
    with pytest.raises(pumice.UserError, match="compiled step, which has changed nothing: voxels: 7 needed"):
        step(*scan(9), batch_size=2)
    expect_same_bits(everything(net, optimizer, scaler, step), before)
    assert step(*scan(9), batch_size=2).isfinite() and int(step.exceeded) == 3 and step.recordings == 1
    assert not torch.equal(net[0].weight, before[0])


@pytest.mark.parametrize("scale", [None, 2.0**10])
@pytest.mark.parametrize("name", list(MAKERS))
def test_a_plan_says_the_bytes_and_changes_nothing(name: str, scale: float | None) -> None:
    net, optimizer, scaler, step = made(name, scale, clip_norm=0.5)
    other, by_hand, _, ordinary = made(name, scale, clip_norm=0.5)
    random = torch.get_rng_state()
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    held = step.plan(*scan(3), batch_size=2)
    assert held == 100 + next(iter(step._buckets)).bytes, "the graph is given up, what was learned is not"
    expect_same_bits(state_of(net, optimizer), before)
    assert len(optimizer.state) == 0 and step.grad_norm is None and torch.equal(torch.get_rng_state(), random)
    assert scaler is None or (scaler._scale is None and scaler.get_scale() == scale)
    expect_same_bits(trained(step, 12), trained(ordinary, 12))
    expect_same_bits(state_of(net, optimizer), state_of(other, by_hand))

    before, recordings = everything(net, optimizer, scaler, step), step.recordings
    cells, features, labels = scan(20)
    given = cells, features, labels.int()  # another bucket
    held = step.plan(*given, batch_size=2)
    assert held > 0 and step.recordings == recordings + 1
    expect_same_bits(everything(net, optimizer, scaler, step), before)
    assert step.plan(*given, batch_size=2) == held and step.recordings == recordings + 1, "it is known by now"
    torch.testing.assert_close(step(*given, batch_size=2), ordinary(*given, batch_size=2), rtol=1e-3, atol=1e-4)
    assert step.recordings == recordings + 1, "the first step of the bucket runs the graph"
    assert pumice.compile_step(net, losses.cross_entropy, optimizer).plan(*given, batch_size=2) == 0, "on the CPU nothing is recorded"


def test_a_plan_goes_on_where_a_scale_is_too_large() -> None:
    net, optimizer, scaler, step = made("Adam", 2.0**127)
    with torch.no_grad():
        net[-1].weight.mul_(1e3)
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    assert step.plan(*scan(3), batch_size=2) > 0
    expect_same_bits(state_of(net, optimizer), before)
    assert scaler._scale is None and step.overflows == 0
    with torch.no_grad():
        net[-1].weight.fill_(float("nan"))
    with pytest.raises(pumice.UserError, match="not finite in 64 steps: begin with a smaller init_scale"):
        step.plan(*scan(3), batch_size=2)
    assert len(optimizer.state) == 0 and scaler._scale is None


def test_numbers_that_are_not_finite_are_taken_back_too() -> None:
    tensors = [
        torch.tensor([1.0, float("nan"), -0.0]), torch.tensor([7, -(2**62)]), torch.tensor([True, False]),
        torch.randn(3, 5, dtype=torch.bfloat16).t(), torch.randn(4, dtype=torch.complex128), torch.empty(0), torch.tensor(3.5),
    ]  # fmt: skip
    before = [tensor.clone() for tensor in tensors]
    undo = Undo([*tensors, tensors[0]])
    for flag in (1.0, 0.0):
        undo.note()
        for tensor in tensors:
            tensor.copy_(torch.full_like(tensor, 1) if tensor.dtype == torch.bool else torch.full_like(tensor, 3))
        tensors[0].fill_(float("inf"))
        written = [tensor.clone() for tensor in tensors]
        undo.take_back(torch.tensor(flag))
        for tensor, expected in zip(tensors, before if flag else written):
            assert torch.equal(tensor.contiguous().view(torch.uint8) if tensor.dim() else tensor,
                               expected.contiguous().view(torch.uint8) if tensor.dim() else expected)  # fmt: skip


def test_gradients_that_are_not_finite_change_what_a_scaler_changes() -> None:
    for name in MAKERS:
        net, optimizer, scaler, step = made(name, 2.0**10)
        trained(step, 4)
        before = everything(net, optimizer, scaler, step)
        scaler._scale.fill_(2.0**127)  # as training on would make it, some day
        with torch.no_grad():
            net[-1].weight.mul_(100)
            before[-1], weight = before[-1], net[0].weight.clone()
        loss = step(*scan(5), batch_size=2)
        assert loss.isfinite() and int(step.overflows) == 1 and int(step.exceeded) == 0
        assert scaler.get_scale() == 2.0**126 and torch.equal(net[0].weight, weight)
        assert int(net[1].num_batches_tracked) == 5, "the pass there was one all the same"


def test_a_step_runs_eagerly_where_that_is_asked_for() -> None:
    net, optimizer, scaler, step = made("SGD", fallback="eager", max_voxels=1024)
    trained(step, 4)
    other = copy.deepcopy(net)
    by_hand = MAKERS["SGD"](other.parameters())
    by_hand.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    bucket = next(iter(step._buckets))
    run = bucket.step

    def troubled(*given: Any) -> Any:
        step._recorder.text = "voxels: 7 needed, capacity 5"
        return run(*given)

    bucket.step = troubled
    loss = step(*scan(4), batch_size=2)
    expected = pumice.compile_step(other, losses.cross_entropy, by_hand)(*scan(4), batch_size=2)
    assert torch.equal(loss, expected)
    expect_same_bits(state_of(net, optimizer), state_of(other, by_hand))
    assert step._recorder.graphs == 0
    bucket.step = run
    assert step(*scan(5), batch_size=2).isfinite() and step._recorder.graphs == 1
    cells = torch.tensor([[0, i, j, k] for i in range(11) for j in range(11) for k in range(11)])
    assert step(cells, torch.randn(len(cells), 4), torch.zeros(len(cells), dtype=torch.long)).isfinite()
    step.options = step.options._replace(falls_back=False)
    with pytest.raises(pumice.UserError, match="1331 voxels, max_voxels = 1024"):
        step(cells, torch.randn(len(cells), 4), torch.zeros(len(cells), dtype=torch.long))


def changes(net: Any, optimizer: Any, scaler: Any) -> dict[str, Callable[[], Any]]:
    def load() -> None:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    def replace() -> None:
        net[2] = torch.nn.GELU()

    def move() -> None:
        net[0].weight.data = net[0].weight.data.clone()

    return {
        "what the optimiser keeps": load,
        "a number of the optimiser": lambda: optimizer.param_groups[0].update(weight_decay=0.125),
        "a module": replace,
        "memory": move,
        "a parameter that is frozen": lambda: net[0].weight.requires_grad_(False),
        "a norm in evaluation": lambda: net[1].eval(),
        "the scaler": lambda: scaler.set_growth_interval(7),
    }


@pytest.mark.parametrize("name", list(changes(None, None, None)))
def test_changes_are_noticed_before_a_step(name: str) -> None:
    net, optimizer, scaler, step = made("fused AdamW", 2.0**10)
    trained(step, 5)
    changes(net, optimizer, scaler)[name]()
    other = copy.deepcopy(net)
    by_hand = MAKERS["fused AdamW"](other.parameters())
    by_hand.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    again = torch.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    ordinary = pumice.compile_step(other, losses.cross_entropy, by_hand, scaler=again)
    for turn in range(4):
        given = scan(turn + 5)
        torch.testing.assert_close(step(*given, batch_size=2), ordinary(*given, batch_size=2), rtol=1e-3, atol=1e-4)
        assert step.recordings == (1 if turn == 0 else 2), "an eager step, and then another recording"
    for one, another in zip(state_of(net, optimizer), state_of(other, by_hand)):
        torch.testing.assert_close(one, another, rtol=1e-2, atol=2e-3)


def test_what_a_step_writes_is_seen_by_those_who_look_for_it() -> None:
    net, optimizer, scaler, step = made()
    trained(step, 4)
    state = step._state
    with torch.no_grad():
        net[0].weight.mul_(0.5)  # steps read it anew
    net.load_state_dict(copy.deepcopy(net.state_dict()))
    versions = [tensor._version for tensor in (net[0].weight, net[1].running_mean)]
    trained(step, 1)
    assert step._state is state and step.recordings == 1
    assert all(tensor._version > last for tensor, last in zip((net[0].weight, net[1].running_mean), versions))


def test_schedules_of_other_numbers_are_refused() -> None:
    net, optimizer, scaler, step = made()
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2**-6, total_steps=100)
    with pytest.raises(pumice.UserError, match="changed 4 times, .*cycle_momentum=False"):
        for turn in range(40):
            trained(step, 1, turn)
            schedule.step()
    assert turn < 20
    net, optimizer, scaler, step = made()
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2**-6, total_steps=100, cycle_momentum=False)
    for turn in range(20):
        trained(step, 1, turn)
        schedule.step()
    assert step.recordings == 1


@pytest.mark.parametrize("rows", [0, 60])
def test_an_eager_step_behind_one_in_trouble_changes_nothing(rows: int) -> None:
    net, optimizer, scaler, step = made("SGD")
    trained(step, 4)
    recorder = step._recorder
    recorder.text, recorder.host_knows = "voxels: 7 needed, capacity 5", False
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    cells, features, labels = scan(1, 60)
    grid = {"batch_size": 2, "spatial_shape": [1 << 14] * 3}  # of a bucket of its own, or without rows of none
    with pytest.raises(pumice.UserError, match="7 needed, capacity 5"):
        step(cells[:rows], features[:rows], labels[:rows], **grid)
    expect_same_bits(state_of(net, optimizer), before)
    assert trained(step, 1)[0].isfinite()


class Changed(torch.nn.Module):
    """Applies a function or a module to features."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        return x.replace(features=self.function(x.features))


class Scaled(torch.nn.Module):
    """Has a parameter whose gradient is a sum over all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features * self.scale


MIXING: dict[str, Callable[[], Any]] = {
    "a mean": lambda: lambda features: features - features.mean(0),
    "a scale of its own": lambda: Scaled(),
    "a norm of items": lambda: lambda features: torch.nn.functional.instance_norm(features.T[None])[0].T,
    "the number of rows": lambda: lambda features: features / len(features) ** 0.5,
}


@pytest.mark.parametrize("name", list(MIXING))
def test_modules_that_mix_rows_are_refused(name: str) -> None:
    net = network(head=torch.nn.Sequential(Changed(MIXING[name]()), nn.Linear(8, CLASSES)))
    optimizer = MAKERS["SGD"](net.parameters())
    step = pretended_step.compile_step(net, losses.cross_entropy, optimizer)
    trained(step, 2)
    before = [tensor.clone() for tensor in state_of(net, optimizer)]
    for _ in range(2):
        with pytest.raises(pumice.UserError, match=r"(module '6\.0|the model|module '6\.0\.function).* cannot be recorded"):
            trained(step, 1)
        expect_same_bits(state_of(net, optimizer), before)
    assert step.recordings == 0


TOLD = {
    "a norm": lambda: torch.nn.BatchNorm1d(8),
    "a norm without parameters": lambda: torch.nn.BatchNorm1d(8, affine=False),
    "a norm of the batch": lambda: torch.nn.BatchNorm1d(8, track_running_stats=False),
    "a settled norm": lambda: torch.nn.BatchNorm1d(8).eval(),
    "a dense layer": lambda: torch.nn.Linear(8, 8),
    "a dense layer without a bias": lambda: torch.nn.Linear(8, 8, bias=False),
    "a norm of rows": lambda: torch.nn.LayerNorm(8),
    "a norm of groups": lambda: torch.nn.GroupNorm(2, 8),
    "slopes": lambda: torch.nn.PReLU(8),
    "all of them": lambda: torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.PReLU(), torch.nn.Dropout(0.0), torch.nn.LayerNorm(8), torch.nn.GELU()
    ),
}


@pytest.mark.parametrize("name", list(TOLD))
def test_modules_of_pytorch_are_told_how_many_rows_are_in_use(name: str) -> None:
    check_trained_as_eagerly(TOLD[name])


def check_trained_as_eagerly(make: Callable[[], torch.nn.Module]) -> None:
    """Ten steps of a network with such a part in its head, of which most are a graph's, and ten eager ones end alike."""
    torch.manual_seed(1)
    net = network(head=torch.nn.Sequential(Changed(make()), nn.Linear(8, CLASSES)))
    other = copy.deepcopy(net)
    optimizer, by_hand = MAKERS["SGD"](net.parameters()), MAKERS["SGD"](other.parameters())
    step = pretended_step.compile_step(net, losses.cross_entropy, optimizer)
    ordinary = pumice.compile_step(other, losses.cross_entropy, by_hand)
    for one, another in zip(trained(step, 10), trained(ordinary, 10)):
        torch.testing.assert_close(one, another, rtol=1e-3, atol=1e-4)
    for one, another in zip(state_of(net, optimizer), state_of(other, by_hand)):
        torch.testing.assert_close(one, another, rtol=1e-2, atol=2e-3)
    assert step.recordings == 1


class Recomputed(torch.nn.Module):
    """Features that torch.utils.checkpoint computes again in the pass back, one such part inside another if `nested`."""

    def __init__(self, use_reentrant: bool, nested: bool, channels: int = 8, **more: Any) -> None:
        super().__init__()
        self.nested, self.how = nested, {"use_reentrant": use_reentrant, **more}
        self.parts = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.Linear(channels, channels), torch.nn.BatchNorm1d(channels), torch.nn.PReLU(channels),
                torch.nn.LayerNorm(channels),
            )
            for _ in range(2)
        )  # fmt: skip

    def again(self, function: Callable[[Any], Any], x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(function, x, **self.how)

    def both(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.again if self.nested else lambda function, y: function(y)
        return inner(self.parts[1], self.parts[0](x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.both, x)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_what_is_computed_again_counts_rows_as_before(use_reentrant: bool, nested: bool) -> None:
    check_trained_as_eagerly(lambda: Recomputed(use_reentrant, nested))


class OnSitesOfItsOwn(torch.nn.Module):
    """Makes sites of the indices that it is given, in the pass back again."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.SubMConv3d(8, CLASSES, 3)
        self.made: list[Any] = []

    def convolved(self, features: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        x = pumice.SparseTensor(indices, features)
        self.made.append(x.coords)
        return self.layer(x).features

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        made = torch.utils.checkpoint.checkpoint(self.convolved, x.features, x.indices, use_reentrant=False)
        return x.replace(features=made)


def test_sites_that_are_made_again_are_those_of_the_call() -> None:
    head = OnSitesOfItsOwn()
    net = torch.nn.Sequential(nn.SubMConv3d(4, 8, 3), head)
    step = pretended_step.compile_step(net, losses.cross_entropy, MAKERS["SGD"](net.parameters()))
    for turn in range(4):
        trained(step, 1, turn)
        first, again = head.made[-2:]
        assert first.is_same(again), "the pass back computes on the sites of the pass there"
        head.made.clear()
    assert step.recordings == 1


def test_random_numbers_that_are_kept_for_a_pass_back_are_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, work: Any) -> Any:
        raise RuntimeError("Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture.")

    net, optimizer, scaler, step = made()
    trained(step, 2)
    monkeypatch.setattr(pretended_step.PretendedStepRecorder, "record", refuse)
    with pytest.raises(pumice.UserError, match=r"the model .*current_seed.*preserve_rng_state=False.*Dropout"):
        trained(step, 1)


class ForSpconv(torch.nn.Module):
    """As its users write: containers and layers one by one, a residual, a dense shortcut, features joined and put back."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = spconv.SparseSequential(
            spconv.SubMConv3d(4, 8, 3, bias=False, indice_key="0"), torch.nn.BatchNorm1d(8), torch.nn.ReLU(inplace=True)
        )
        self.inner = spconv.SubMConv3d(8, 8, 3, bias=False, indice_key="0")
        self.norm = torch.nn.BatchNorm1d(8)
        self.shortcut = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.BatchNorm1d(8))
        self.down = spconv.SparseConv3d(8, 8, 2, 2, bias=False, indice_key="d")
        self.up = spconv.SparseInverseConv3d(8, 8, 2, indice_key="d")
        self.head = torch.nn.Linear(16, CLASSES)

    def forward(self, x: Any) -> torch.Tensor:
        x = self.stem(x)
        y = self.inner(x)
        y = y.replace_feature(torch.relu(self.norm(y.features) + self.shortcut(x.features)))
        z = self.up(self.down(y))
        return self.head(torch.cat([z.features, y.features], dim=1))


def test_networks_for_spconv_are_recorded() -> None:
    torch.manual_seed(2)
    net = ForSpconv()
    other = copy.deepcopy(net)
    optimizer, by_hand = MAKERS["SGD"](net.parameters()), MAKERS["SGD"](other.parameters())
    step = pretended_step.compile_step(net, losses.cross_entropy, optimizer)
    ordinary = pumice.compile_step(other, losses.cross_entropy, by_hand)
    for turn in range(10):
        cells, features, labels = scan(turn, 40 + 3 * turn)
        x = spconv.SparseConvTensor(features, cells, [1 << 14] * 3, 2)  # a pretended plan has sites far away
        torch.testing.assert_close(step(x, labels), ordinary(x, labels), rtol=1e-3, atol=1e-4)
    for one, another in zip(state_of(net, optimizer), state_of(other, by_hand)):
        torch.testing.assert_close(one, another, rtol=1e-2, atol=2e-3)
    assert step.recordings == 1


def test_modules_that_take_each_row_for_itself_are_recorded() -> None:
    function = lambda features: torch.nn.functional.gelu(features).softmax(1) * features  # noqa: E731
    net = network(head=torch.nn.Sequential(Changed(function), torch.nn.Sequential(nn.Dropout(0.5)), nn.Linear(8, CLASSES)))
    step = pretended_step.compile_step(net, losses.cross_entropy, MAKERS["SGD"](net.parameters()))
    assert all(loss.isfinite() for loss in trained(step, 6)) and step.recordings == 1
    assert net[6][1][0].training


def test_losses_of_ones_own_see_zeros_and_ignored_labels() -> None:
    seen: list[tuple[int, float, torch.Tensor]] = []

    def loss(output: Any, labels: dict[str, torch.Tensor]) -> torch.Tensor:
        classes, rows = labels["classes"], labels["weight"].shape[0]
        seen.append((rows, float(output.features[60:].detach().abs().sum()), classes[60:].unique()))
        keep = classes != -7
        scores = output.features.log_softmax(1).gather(1, classes.clamp(min=0).long()[:, None])[:, 0]
        return -(scores * keep * labels["weight"]).sum() / labels["scale"].sum()

    loss.ignore_index = -7  # type: ignore[attr-defined]
    net = network()
    step = pretended_step.compile_step(net, loss, MAKERS["SGD"](net.parameters()))
    cells, features, classes = scan(1)
    cells, features = cells[:60], features[:60]
    labels = {
        "classes": classes[:60].clamp(min=0).to(torch.uint8), "weight": torch.rand(len(cells)), "scale": torch.full((2,), 30.0)
    }  # fmt: skip
    values = [step(cells, features, labels, batch_size=2) for _ in range(6)]
    assert values[-1] < values[0] and step.recordings == 1
    rows, past, ignored = seen[-1]
    assert rows == 1024 and past == 0 and ignored.tolist() == [-7]


def weighted(output: Any, labels: dict[str, torch.Tensor], ignore_index: int = -1) -> torch.Tensor:
    """Ten times what the labels say, of which there are a fixed number, whatever the scan."""
    return losses.cross_entropy(output.features, labels["classes"]) * labels["scale"].sum()


@pytest.mark.parametrize("first", [50, 40])
def test_labels_that_belong_to_no_voxel_may_have_as_many_rows(first: int) -> None:
    net = network()
    other = copy.deepcopy(net)
    step = pretended_step.compile_step(net, weighted, MAKERS["SGD"](net.parameters()))
    ordinary = pumice.compile_step(other, weighted, MAKERS["SGD"](other.parameters()))
    labels = torch.randint(0, CLASSES, (60,))
    refused = 0
    for turn, count in enumerate([first, 40, 40, 40, 40, 50, 51, 40, 33, 40]):
        cells, features, _ = scan(turn)
        given = cells[:count], features[:count], {"classes": labels[:count], "scale": torch.full((40,), 0.25)}
        try:
            loss = step(*given, batch_size=2)
        except pumice.UserError as error:
            assert "the loss is another" in str(error) and "labels of 40 rows are taken for one of each voxel" in str(error)
            refused += 1
            continue
        torch.testing.assert_close(loss, ordinary(*given, batch_size=2), rtol=1e-3, atol=1e-4)
    assert refused == (0 if first == 50 else 3), "of calls with 40 voxels before another number tells"
    assert step.recordings >= 1


def test_random_numbers_of_steps_that_changed_nothing_are_given_back() -> None:
    net, optimizer, scaler, step = made()
    trained(step, 3)
    recorder, bucket = step._recorder, next(iter(step._buckets))
    run = bucket.step

    def drawing(*given: Any) -> Any:
        recorder.drawn += 4
        return run(*given)

    bucket.step = drawing
    trained(step, 2)
    assert recorder.drawn == 8
    recorder.text, recorder.host_knows = "voxels: 7 needed, capacity 5", False
    trained(step, 3)
    with pytest.raises(pumice.UserError, match="^voxels: 7 needed"):
        step.wait()
    assert recorder.drawn == 8
    trained(step, 1)
    assert recorder.drawn == 12


def test_optimisers_that_keep_numbers_on_the_host_are_refused() -> None:
    net = network()
    for name in ("Adam", "SGD"):
        with pytest.raises(pumice.UserError, match=f"optimizer {name} keeps numbers of group 0 on the host.*fused=True"):
            check_recordable(MAKERS[name](net.parameters()))
    check_recordable(MAKERS["fused AdamW"](net.parameters()))
    check_recordable(torch.optim.NAdam(net.parameters(), capturable=True))


def test_every_size_has_a_bucket_of_its_own() -> None:
    net, optimizer, scaler, step = made()
    for turn in range(8):
        cells = torch.tensor([[0, i, j, k] for i in range(12) for j in range(12) for k in range(8 + 8 * (turn % 2))])
        labels = torch.randint(0, CLASSES, (len(cells),))
        assert step(cells, torch.randn(len(cells), 4), labels).isfinite()
    assert step.recordings == 2 and len(step._buckets) == 2
    assert step.bytes > 2 * 100 and "CompiledStep" not in repr(step) and "room for [" in repr(step)
    step.forget()
    assert step.bytes == 0
