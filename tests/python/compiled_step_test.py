"""Compiled training steps on the CPU, where they run eagerly: the same bits as a loop written by hand, and what is
refused. What graphs do is in compiled_step_flow_test.py, on a pretended device, and in compiled_step_gpu_test.py."""

from __future__ import annotations

import copy
import functools
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import random_sites

import pumice
from pumice import losses, nn

CLASSES = 3


def network(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU(), nn.Conv3d(8, 8, 2, stride=2), nn.LayerNorm(8),
        nn.InverseConv3d(8, 8, 2, stride=2), nn.Linear(8, CLASSES),
    )  # fmt: skip
    with torch.no_grad():
        net[-1].weight.mul_(20)
    return net


def scan(seed: int, count: int = 60) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    cells = random_sites(3, 6, count, 2, seed)
    labels = torch.randint(-1, CLASSES, (len(cells),), generator=generator)
    return cells, torch.randn(len(cells), 4, generator=generator), labels


def state_of(net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    kept = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    return [*net.state_dict().values(), *kept]


def expect_same_bits(one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other):
        assert torch.equal(left, right)


MAKERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "Adam amsgrad": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True, foreach=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-2),
}


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step()")  # of a first step that is skipped
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("clip_norm", [None, 0.5])
@pytest.mark.parametrize("name", list(MAKERS))
def test_fifty_steps_have_the_bits_of_a_loop_written_by_hand(name: str, clip_norm: float | None, scaled: bool) -> None:
    net = network()
    other = copy.deepcopy(net)
    optimizer, by_hand = MAKERS[name](net.parameters()), MAKERS[name](other.parameters())
    # Of losses above 2, the larger is infinite. PyTorch's fused SGD begins with memory that nobody has written where its
    # very first step is skipped.
    scale = 2.0**60 if name == "SGD fused" else 2.0**127
    scalers = [torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3) if scaled else None for _ in range(2)]
    step = pumice.compile_step(net, losses.cross_entropy, optimizer, scaler=scalers[0], clip_norm=clip_norm)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(one, 50) for one in (optimizer, by_hand)]
    skipped = 0
    for turn in range(50):
        cells, features, labels = scan(turn)
        loss = step(cells, features, labels, batch_size=2)
        expected = losses.cross_entropy(other(pumice.SparseTensor(cells, features, batch_size=2)).features, labels)
        by_hand.zero_grad()
        scaler = scalers[1]
        (expected if scaler is None else scaler.scale(expected)).backward()
        norm = None
        if clip_norm is not None:
            if scaler is not None:
                scaler.unscale_(by_hand)
            norm = torch.nn.utils.clip_grad_norm_(other.parameters(), clip_norm)
        if scaler is None:
            by_hand.step()
        else:
            before = scaler.get_scale()
            scaler.step(by_hand)
            scaler.update()
            skipped += scaler.get_scale() < before
        for schedule in schedules:
            schedule.step()
        assert torch.equal(loss, expected) and not loss.requires_grad
        assert (step.grad_norm is None) == (clip_norm is None)
        assert norm is None or torch.equal(torch.as_tensor(step.grad_norm), norm) or not norm.isfinite()
    expect_same_bits(state_of(net, optimizer), state_of(other, by_hand))
    assert int(step.overflows) == skipped and int(step.exceeded) == 0
    if scaled:
        assert skipped > 0 or name == "SGD fused", "the test is to meet gradients that are not finite"
        assert scalers[0].state_dict() == scalers[1].state_dict()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_training_goes_on_from_a_checkpoint() -> None:
    def made(seed: int) -> tuple[Any, ...]:
        net = network(seed)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        return net, optimizer, scaler, pumice.compile_step(net, losses.cross_entropy, optimizer, scaler=scaler)

    net, optimizer, scaler, step = made(0)
    for turn in range(5):
        step(*scan(turn), batch_size=2)
    file = io.BytesIO()
    torch.save([one.state_dict() for one in (net, optimizer, scaler)], file)
    expected = [step(*scan(turn), batch_size=2) for turn in range(5, 10)]
    file.seek(0)
    net, optimizer, scaler, step = made(7)
    for one, state in zip((net, optimizer, scaler), torch.load(file)):
        one.load_state_dict(state)
    expect_same_bits([step(*scan(turn), batch_size=2) for turn in range(5, 10)], expected)


def test_what_a_step_takes() -> None:
    net = network()
    step = pumice.compile_step(net, losses.cross_entropy, torch.optim.SGD(net.parameters(), 0.0))
    cells, features, labels = scan(1)
    loss = step(cells, features, labels, batch_size=2)
    assert torch.equal(step(cells.long(), features, labels.to(torch.int8), batch_size=2), loss)
    assert torch.equal(step(pumice.SparseTensor(cells, features, batch_size=2), labels), loss)
    assert torch.equal(step(cells, features, labels=labels, batch_size=2), loss)
    assert torch.equal(step(pumice.SparseTensor(cells, features, batch_size=2), labels=labels), loss)
    assert step.plan(cells, features, labels=labels, batch_size=2) == 0
    with pytest.raises(pumice.UserError, match="given 4 arguments"):
        step(cells, features, labels, labels=labels)
    with pytest.raises(pumice.UserError, match="labels hold None: give tensors"):
        step(cells, features, labels=None)
    for given in ((), (cells,), (cells, features, labels, labels)):
        with pytest.raises(pumice.UserError, match=rf"given {len(given)} arguments: give coords, features and labels"):
            step(*given)
    with pytest.raises(pumice.UserError, match="labels hold an int: give tensors"):
        step(cells, features, {"classes": labels, "scale": 3})


class Headed(torch.nn.Module):
    """Takes a dictionary, and gives features beside the sparse tensor that they come from."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, given: dict[str, Any], scale: float) -> tuple[Any, torch.Tensor]:
        y = self.body(pumice.SparseTensor(given["coords"], given["features"] * scale, batch_size=2))
        return y, y.features.square()


def test_losses_of_ones_own_get_what_the_model_returns() -> None:
    net = Headed()

    def loss(output: Any, labels: dict[str, torch.Tensor]) -> torch.Tensor:
        y, squares = output
        return losses.cross_entropy(y.features, labels["classes"]) + (squares.sum() - labels["size"]).abs() * 1e-3

    loss.ignore_index = -1  # type: ignore[attr-defined]
    step = pumice.compile_step(
        net, loss, torch.optim.SGD(net.parameters(), 1e-3), input=lambda x: ({"coords": x.indices, "features": x.features}, 2.0)
    )
    cells, features, labels = scan(2)
    values = [step(cells, features, {"classes": labels, "size": torch.tensor(9.0)}, batch_size=2) for _ in range(10)]
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    "loss",
    [
        torch.nn.CrossEntropyLoss(ignore_index=-1),
        functools.partial(torch.nn.functional.cross_entropy, ignore_index=-1),
        functools.partial(losses.lovasz_softmax, ignore_index=-1),
        losses.lovasz_softmax,
    ],
)
def test_losses_of_pumice_and_pytorch_get_features(loss: Any) -> None:
    net = network()
    step = pumice.compile_step(net, loss, torch.optim.SGD(net.parameters(), 0.1))
    cells, features, labels = scan(3)
    values = [step(cells, features, labels, batch_size=2) for _ in range(10)]
    assert values[-1] < values[0]


class WithHook(torch.nn.ReLU):
    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(lambda *_: None)


def refusals() -> dict[str, tuple[Callable[[Any, Any], Any], str]]:
    entropy = losses.cross_entropy

    def hooked(net: Any, sgd: Any) -> Any:
        sgd.register_step_post_hook(lambda *_: None)
        return pumice.compile_step(net, entropy, sgd)

    return {
        "no module": (lambda net, sgd: pumice.compile_step(entropy, entropy, sgd), "model is a function: give a module"),
        "no loss": (lambda net, sgd: pumice.compile_step(net, 3, sgd), "loss is an int: give a function"),
        "a loss without an ignore index": (
            lambda net, sgd: pumice.compile_step(net, lambda y, t: y.features.sum(), sgd),
            "loss <lambda> has no ignore_index.*loss.ignore_index = -1",
        ),
        "a module without one": (
            lambda net, sgd: pumice.compile_step(net, torch.nn.MSELoss(), sgd), "loss MSELoss has no ignore_index"
        ),
        "no optimiser": (lambda net, sgd: pumice.compile_step(net, entropy, net), "optimizer is a Sequential"),
        "an optimiser that calls the loss": (
            lambda net, sgd: pumice.compile_step(net, entropy, torch.optim.LBFGS(net.parameters())), "LBFGS calls the loss itself"
        ),
        "hooks of the optimiser": (hooked, "optimizer SGD has hooks"),
        "no scaler": (lambda net, sgd: pumice.compile_step(net, entropy, sgd, scaler=2.0), "scaler is a float"),
        "no norm": (lambda net, sgd: pumice.compile_step(net, entropy, sgd, clip_norm=0), "clip_norm = 0: give the largest"),
        "hooks": (
            lambda net, sgd: pumice.compile_step(net.append(WithHook()), entropy, sgd), r"module '7' \(WithHook\) has hooks"
        ),
        "buckets": (lambda net, sgd: pumice.compile_step(net, entropy, sgd, buckets=1), "buckets = 1: give the ratio"),
        "fallback": (lambda net, sgd: pumice.compile_step(net, entropy, sgd, fallback="no"), "fallback = 'no'"),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(refusals()))
def test_is_refused_by_name(name: str) -> None:
    call, message = refusals()[name]
    net = network()
    with pytest.raises(pumice.UserError, match=message):
        call(net, torch.optim.SGD(net.parameters(), 0.1))


def test_losses_that_are_none_are_refused_in_the_call() -> None:
    net = network()
    cells, features, labels = scan(4)
    for made, message in (
        (lambda y: y.features.sum(1), rf"loss gave torch.float32 \({len(cells)},\): give a function that returns one"),
        (lambda y: 3.0, "loss gave a float"),
        (lambda y: y.features.detach().sum(), "does not follow from parameters"),
    ):

        def loss(output: Any, labels: Any, made: Any = made) -> Any:
            return made(output)

        loss.ignore_index = -1  # type: ignore[attr-defined]
        step = pumice.compile_step(net, loss, torch.optim.SGD(net.parameters(), 0.1))
        with pytest.raises(pumice.UserError, match=message):
            step(cells, features, labels, batch_size=2)
