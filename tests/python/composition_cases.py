"""Random networks beside their layers one by one: outputs, all gradients and which parameters have one,
running statistics; in training, in evaluation and mixed, with some parameters frozen, in every precision,
eager, compiled and exported.

    python tests/python/composition_cases.py [--networks 20000] [--seed 1]     # many
    PUMICE_CASE=123:compiled python tests/python/composition_cases.py          # one, as a failure names it
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import dataclasses
import os
import random
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
from composition_networks import Draw, Network, fill
from composition_reference import Hooks, plain
from conftest import random_sites

import pumice
from pumice import nn

WAYS = ("eager", "compiled", "exported")
PRECISIONS = ("float64",) * 10 + (
    "float32", "half", "half", "bfloat16", "half with norms in float32",
    "bfloat16 with norms in float32", "autocast to bfloat16", "autocast to float16",
)  # fmt: skip
EXTENTS = {1: 30, 2: 8, 3: 5}


class Mismatch(AssertionError):
    pass


@dataclasses.dataclass
class Step:
    """How a network is run once."""

    training: str
    frozen: str
    gradients: str
    of_input: bool
    hooks: int
    seed: int


@dataclasses.dataclass
class Outcome:
    """What came of it. Gradients and state by name."""

    output: torch.Tensor
    learns: bool
    gradients: dict[str, torch.Tensor | None]
    state: dict[str, torch.Tensor]
    seen: int  # by hooks


def draw_step(rng: random.Random, way: str) -> Step:
    return Step(
        training=rng.choice(("training", "training", "evaluation", "evaluation", "mixed")),
        frozen=rng.choice(list(FROZEN)),
        gradients=rng.choice(("wanted",) * 6 + ("no_grad", "inference_mode")),
        of_input=rng.random() < 0.5,
        hooks=rng.choice((0,) * 8 + (1, 2)) if way == "eager" else 0,
        seed=rng.getrandbits(32),
    )


def of_norm(name: str, net: torch.nn.Module) -> bool:
    owner = net.get_submodule(name.rpartition(".")[0])
    return isinstance(owner, (torch.nn.BatchNorm1d, nn.InstanceNorm, nn.LayerNorm))


# Whether a parameter of a name is frozen.
FROZEN = {
    "nothing": lambda name, net, rng: False,
    "some": lambda name, net, rng: rng.random() < 0.5,
    "most": lambda name, net, rng: rng.random() < 0.85,
    "norms": lambda name, net, rng: of_norm(name, net),
    "all but norms": lambda name, net, rng: not of_norm(name, net),
    "weights": lambda name, net, rng: name.endswith("weight"),
    "all but biases": lambda name, net, rng: not name.endswith("bias"),
    "all but the head": lambda name, net, rng: not name.startswith("head"),
    "everything": lambda name, net, rng: True,
}


def prepare(net: Network, step: Step) -> None:
    """The same for copies of a network."""
    rng = random.Random(step.seed)
    net.zero_grad()
    net.train(step.training == "training")
    for module in net.modules():
        if step.training == "mixed" and isinstance(module, torch.nn.BatchNorm1d):
            module.train(rng.random() < 0.5)
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(not FROZEN[step.frozen](name, net, rng))


def hooked(net: Network, step: Step) -> list[tuple[torch.nn.Module, float | None]]:
    """Modules with the factor that their output is given; None: it is looked at."""
    rng = random.Random(step.seed + 1)
    modules = list(net.body.modules())[1:]
    chosen = rng.sample(modules, min(step.hooks, len(modules)))
    return [(module, rng.choice((None, 1.5))) for module in chosen]


def scaled(made: Any, factor: float | None) -> Any:
    if factor is None:
        return None
    if isinstance(made, torch.Tensor):
        return made * factor
    return made.replace(features=made.features * factor)


def run(
    net: Network,
    x: pumice.SparseTensor,
    step: Step,
    precision: str,
    by: Any = None,
    names: str = "",
    noise: Noise | None = None,
) -> Outcome:
    """`by`: what runs in place of the network (None: its layers one by one); parameters have names that
    begin with `names` there. `noise`: what each layer makes, one by one, is off by up to a rounding."""
    given = x.features.detach().clone().requires_grad_(step.of_input)
    seen = [0]
    handles = []
    hooks: Hooks = {}
    for module, factor in hooked(net, step):

        def see(made: Any, factor: float | None = factor) -> Any:
            seen[0] += 1
            return scaled(made, factor)

        if by is None:
            hooks[module] = lambda made, see=see: (lambda new: made if new is None else new)(see(made))
        else:
            handles.append(module.register_forward_hook(lambda _m, _i, made, see=see: see(made)))
    if noise is not None:
        for module in net.modules():
            first = hooks.get(module, lambda made: made)
            hooks[module] = lambda made, first=first: noise(first(made))
    modes = contextlib.ExitStack()
    if step.gradients != "wanted":
        modes.enter_context(getattr(torch, step.gradients)())
    if precision.startswith("autocast"):
        dtype = getattr(torch, precision.rpartition(" ")[2])
        modes.enter_context(torch.autocast("cpu", dtype=dtype))
    try:
        with modes:
            y = x.replace(features=given)
            made = plain(net, y, hooks) if by is None else by(y)
            output = made.features
    finally:
        for handle in handles:
            handle.remove()
    parameters = dict(net.named_parameters())
    if by is not None and names:
        parameters = {n.removeprefix(names): p for n, p in by.module.named_parameters()}
    learns = output.requires_grad
    if learns:
        weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).reshape(output.shape)
        (output.double() * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in parameters.items()}
    gradients["(input)"] = given.grad
    state = {name: value.clone() for name, value in net.named_buffers()}
    return Outcome(output.detach(), learns, gradients, state, seen[0])


def converted(net: Network, precision: str) -> Network:
    kind = precision.split()[0]
    if kind == "autocast":
        return net.float()
    net.to({"half": torch.float16}.get(kind) or getattr(torch, kind))
    if "norms" in precision:
        for module in net.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.float()
    return net


def error_of(made: torch.Tensor, exact: torch.Tensor) -> float:
    return float((made.double() - exact.double()).norm())


def check(
    what: str,
    mine: torch.Tensor,
    theirs: torch.Tensor,
    exact: torch.Tensor | None,
    others: list[torch.Tensor],
) -> None:
    """In float64 the numbers agree up to rounding. In less, ours are not much farther from the exact ones
    than those of the layers one by one, theirs and `others`, or than a tenth of them."""
    if mine.shape != theirs.shape:
        raise Mismatch(f"{what} has shape {list(mine.shape)}, not {list(theirs.shape)}")
    if exact is None:
        scale = 1 + (float(theirs.double().abs().nan_to_num().max()) if theirs.numel() else 0)
        far = (mine.double() - theirs.double()).abs() > 1e-6 * scale
        if bool((far | (mine.isnan() != theirs.isnan())).any()):
            raise Mismatch(f"{what} is off by {float((mine - theirs).abs().max())} of {scale}")
        return
    if not bool(theirs.isfinite().all() and exact.isfinite().all()):
        return
    size = float(exact.double().norm())
    steps = theirs.numel() ** 0.5 * torch.finfo(theirs.dtype).eps if theirs.is_floating_point() else 0
    farthest = max(error_of(one, exact) for one in (theirs, *others))
    bound = 8 * farthest + 0.1 * size + 16 * steps
    if not error_of(mine, exact) <= bound:
        raise Mismatch(f"{what} is off by {error_of(mine, exact)}, and at most {bound} is right")


def compare(
    mine: Outcome, theirs: Outcome, exact: Outcome | None, others: list[Outcome], precision: str
) -> None:
    if mine.learns is not theirs.learns:
        raise Mismatch(f"the output {'wants' if mine.learns else 'does not want'} a gradient")
    if mine.output.dtype != theirs.output.dtype and not precision.startswith("autocast"):
        raise Mismatch(f"the output is {mine.output.dtype}, not {theirs.output.dtype}")
    check("the output", mine.output, theirs.output, exact and exact.output, [o.output for o in others])
    for name, wanted in theirs.gradients.items():
        found = mine.gradients[name]
        if (found is None) is not (wanted is None):
            raise Mismatch(f"{name} has {'no' if found is None else 'a'} gradient")
        if wanted is None:
            continue
        if found.dtype != wanted.dtype:
            raise Mismatch(f"the gradient of {name} is {found.dtype}, not {wanted.dtype}")
        true = None if exact is None else exact.gradients[name]
        check(f"the gradient of {name}", found, wanted, true, [o.gradients[name] for o in others])
    for name, value in theirs.state.items():
        if mine.state[name].dtype != value.dtype:
            raise Mismatch(f"{name} is {mine.state[name].dtype}, not {value.dtype}")
        check(name, mine.state[name], value, exact and exact.state[name], [o.state[name] for o in others])
    if mine.seen != theirs.seen:
        raise Mismatch(f"hooks saw {mine.seen} outputs, not {theirs.seen}")


class OfTensors(torch.nn.Module):
    """What is exported: of plain coordinates and features."""

    def __init__(self, net: Network) -> None:
        super().__init__()
        self.net = net

    def forward(self, coords: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.net(pumice.SparseTensor(coords, features)).features


class Exported:
    def __init__(self, net: Network, x: pumice.SparseTensor) -> None:
        rows = torch.export.Dim.AUTO
        given = (x.indices, x.features.detach())
        program = torch.export.export(
            OfTensors(net), given, dynamic_shapes=({0: rows}, {0: rows}), strict=False
        )
        self.module = program.module()

    def __call__(self, x: pumice.SparseTensor) -> types.SimpleNamespace:
        """The features alone: on which sites they are a program does not say."""
        return types.SimpleNamespace(features=self.module(x.indices, x.features))


class Noise:
    """Puts features off by up to a rounding of the type that is computed in."""

    def __init__(self, seed: int, precision: str) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        kind = precision.rpartition(" ")[2] if precision.startswith("autocast") else None
        self.autocast = None if kind is None else torch.finfo(getattr(torch, kind)).eps

    def __call__(self, made: Any) -> Any:
        if not isinstance(made, torch.Tensor):
            return made.replace(features=self(made.features))
        off = 2 * torch.rand(made.shape, generator=self.generator, dtype=torch.float64) - 1
        step = max(torch.finfo(made.dtype).eps, self.autocast or 0)
        return (made.double() * (1 + step * off)).to(made.dtype)


def refuses(work: Callable[[], object], way: str) -> bool:
    kinds: tuple[type[Exception], ...] = (ValueError,)
    if way == "compiled":  # what a graph refuses while it is made
        kinds += (torch._dynamo.exc.TorchRuntimeError,)
    try:
        work()
    except kinds:
        return True
    return False


def sites(rng: random.Random, dimension: int, way: str) -> torch.Tensor:
    counts = (30, 60) if way == "exported" else (0, 1, 2, 3) + (10, 20, 40, 60) * 3
    count, batch = rng.choice(counts), rng.choice((1, 2, 3))
    return random_sites(dimension, EXTENTS[dimension], count, batch, rng.getrandbits(16))


def run_case(seed: int, way: str = "eager") -> str:
    """Raises Mismatch where a network is not its layers one by one. Returns "refused" where both of them
    raise, else "agrees"."""
    rng = random.Random(seed)
    draw = Draw(seed)
    channels = draw.channels()
    net = draw.network(channels)
    fill(net, seed)
    precision = "float64" if way == "exported" else rng.choice(PRECISIONS)
    net = converted(net, precision)
    exact = None if precision == "float64" else copy.deepcopy(net).double()
    apart = copy.deepcopy(net)
    dtype = next(iter(net.parameters())).dtype
    dtype = next((p.dtype for p in net.parameters() if p.dtype != torch.float32), dtype)
    cells = sites(rng, draw.dimension, way)
    features = torch.randn(
        len(cells), channels, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)
    x = pumice.SparseTensor(cells, features, batch_size=3)
    own = pumice.SparseTensor(cells, features, batch_size=3)  # with maps of its own
    steps = [draw_step(rng, way) for _ in range(1 if way == "exported" else 2)]
    freezes = way == "eager" and rng.random() < 0.1
    if freezes:
        nn.freeze(net)
    try:
        by: Any = net
        for step in steps:
            for one in (net, apart, exact):
                if one is not None:
                    prepare(one, step)
            if way == "exported":
                other = sites(random.Random(seed + 1), draw.dimension, way)
                by = Exported(net, pumice.SparseTensor(other, features.new_ones(len(other), channels)))
                own = x = pumice.SparseTensor(cells, features)
            elif way == "compiled" and by is net:
                torch._dynamo.reset()
                by = torch.compile(net, backend="aot_eager", dynamic=True, fullgraph=True)
            before = None if exact is None else copy.deepcopy(apart)
            try:
                theirs = run(apart, own, step, precision)
            except ValueError as error:
                if refuses(lambda: run(net, x, step, precision, by), way):  # noqa: B023
                    return "refused"
                raise Mismatch(f"layers one by one raise {error}") from error
            mine = run(net, x, step, precision, by, "net." if way == "exported" else "")
            if before is None:
                compare(mine, theirs, None, [], precision)
            else:
                best = run(exact, own.replace(features=features.double()), step, "float64")
                try:
                    compare(mine, theirs, best, [], precision)
                except Mismatch:  # a norm of few rows magnifies what a layer in front of it rounds
                    others = []
                    for index in range(24):
                        noise = Noise(index, precision)
                        again = copy.deepcopy(before)
                        others.append(run(again, noise(own), step, precision, noise=noise))
                    compare(mine, theirs, best, others, precision)
            if not freezes:
                change(net, rng.getrandbits(16), (apart, exact))
    except Exception as error:
        raise Mismatch(
            f"PUMICE_CASE={seed}:{way}: {type(error).__name__}: {error}\n{precision}, {len(cells)} rows, "
            f"{steps}\n{net}"
        ) from error
    return "agrees"


def change(net: Network, seed: int, copies: tuple[Network | None, ...]) -> None:
    """What a step of an optimiser does, where no version tells; in copies of a network alike."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in net.named_parameters():
        values = torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data.mul_((1 + values / 4).to(parameter.dtype))
        for one in copies:
            if one is not None:
                one.get_parameter(name).data.copy_(parameter)


def one_case(named: str) -> str:
    seed, _, way = named.partition(":")
    return run_case(int(seed), way or "eager")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graphs", type=int, default=100, help="of so many one is compiled, one exported")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if "PUMICE_CASE" in os.environ:
        print(one_case(os.environ["PUMICE_CASE"]))
        return
    counts: collections.Counter[str] = collections.Counter()
    start = time.time()
    for index in range(options.networks):
        way = {0: "compiled", 1: "exported"}.get(index % options.graphs, "eager")
        try:
            counts[f"{way}, {run_case(options.seed * 1_000_000 + index, way)}"] += 1
        except Mismatch as mismatch:
            counts[f"{way}, WRONG"] += 1
            print(mismatch, flush=True)
        if (index + 1) % 1000 == 0:
            print(f"{index + 1} networks, {time.time() - start:.0f} s: {dict(counts)}", flush=True)
    print(f"{options.networks} networks in {time.time() - start:.0f} s: {dict(counts)}")
    if any("WRONG" in name for name in counts):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
