"""Long runs of compiled networks and training steps, each of which prints one line, or says what differs and ends with exit
status 1. The suite runs a few turns of each (long_runs_test.py).

    python tests/python/long_runs.py replay            # 1,000 scans of changing size: graphs, their plans, float64
    python tests/python/long_runs.py curves            # 500 training steps beside a loop written by hand, f32 and AMP
    python tests/python/long_runs.py memory            # 10,000 training steps: nothing grows
    python tests/python/long_runs.py threads           # two threads on two streams train and infer at once, 200 turns each
    python tests/python/long_runs.py gpus              # the same on two GPUs of one process, each with its own networks
    python tests/python/long_runs.py outgrown          # an epoch of 200 scans that outgrows buckets in its middle
    python tests/python/long_runs.py maps              # 1,000 scans: the maps of a graph, entry by entry
    python tests/python/long_runs.py all [--count N] [--device cpu] [--seed 1]

Networks are small, so that all of them take some minutes on one GPU. On a CPU compiled networks run eagerly.
"""

from __future__ import annotations

import argparse
import copy
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from conftest import random_sites
from long_run_maps import expected_tables, tables_network, tables_of, tagged
from torch import Tensor

import pumice
from pumice import losses, nn

CLASSES, ITEMS, EXTENT = 5, 2, 48
GRID = {"batch_size": ITEMS, "spatial_shape": [EXTENT] * 3}
LARGEST = 6000  # voxels that are drawn, a few of them twice
F64_BOUND = 1e-4  # of the largest value, of 48 layers in float32
Given = tuple[Tensor, Tensor, Tensor]  # cells, features, labels


class Different(AssertionError):
    """What a run found."""


class Makers(NamedTuple):
    """How networks and steps are compiled, and what layers stand in."""

    compile: Callable[..., Any] = pumice.compile
    compile_step: Callable[..., Any] = pumice.compile_step
    container: Callable[..., torch.nn.Module] = nn.Sequential
    grid: dict[str, Any] = GRID


def check(holds: bool, what: str) -> None:
    if not holds:
        raise Different(what)


def scan(count: int, seed: int, device: str) -> Given:
    """Up to `count` voxels, one cell in sixteen of a block; labels follow from features, and one in twenty is ignored."""
    generator = torch.Generator().manual_seed(seed)
    extent = min(EXTENT, max(4, round((8 * count) ** (1 / 3))))
    cells = random_sites(3, extent, count, ITEMS, seed)
    features = torch.randn(len(cells), 4, generator=generator)
    labels = (features @ torch.tensor([[1.0, -1, 0, 0, 1], [0, 1, -1, 0, 1], [0, 0, 1, -1, 1], [1, 1, 0, 1, -2]])).argmax(1)
    labels[torch.rand(len(cells), generator=generator) < 0.05] = -1
    return cells.to(device), features.to(device), labels.to(device)


def small(makers: Makers, device: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return makers.container(
        nn.SubMConv3d(4, 16, 3, bias=False), nn.BatchNorm(16), nn.ReLU(), nn.Conv3d(16, 16, 2, stride=2),
        nn.InverseConv3d(16, 16, 2, stride=2), nn.LayerNorm(16), nn.Linear(16, CLASSES),
    ).to(device)  # fmt: skip


def adam(net: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)


def scaler_for(device: str) -> torch.amp.GradScaler:
    return torch.amp.GradScaler(device.split(":")[0], init_scale=2.0**10)


class ByHand:
    """A training step as people write it."""

    def __init__(self, net: torch.nn.Module, optimizer: torch.optim.Optimizer, scaler: Any = None) -> None:
        self.net, self.optimizer, self.scaler = net, optimizer, scaler

    def __call__(self, cells: Tensor, features: Tensor, labels: Tensor, **grid: Any) -> Tensor:
        loss = losses.cross_entropy(self.net(pumice.SparseTensor(cells, features, **grid)).features, labels)
        self.optimizer.zero_grad()
        with torch.autocast(features.device.type, enabled=False):
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss.detach()


@contextmanager
def deterministic() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def state_of(net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    kept = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    return [value.clone() for value in (*net.state_dict().values(), *kept)]


def same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return len(one) == len(other) and all(torch.equal(left, right) for left, right in zip(one, other))


def replay(count: int, device: str, seed: int, makers: Makers) -> str:
    """Graphs give the bits of their plans, and what float64 gives within rounding."""
    torch.manual_seed(seed)
    net = pumice.models.MinkUNet42(4, CLASSES, width_factor=0.25).eval().to(device)
    exact = copy.deepcopy(net).double().cpu()
    graphs, plans = makers.compile(net), makers.compile(net, eager=True)
    draw = random.Random(seed)
    # First the largest of each bucket, from which it learns; then any size, none and one voxel among them.
    learned = [size for size in range(1000, LARGEST + 1, 1000) for _ in range(3)]
    sizes = [*learned, 0, 1, 31, 33, *(draw.randint(0, LARGEST) for _ in range(count))]
    worst, compared, most = 0.0, 0, 0
    with deterministic():
        for turn, size in enumerate(sizes[: max(4, count) + len(learned)]):
            cells, features, _ = scan(size, seed + turn, device)
            made, by_plan = (fast(cells, features, **makers.grid).features for fast in (graphs, plans))
            check(torch.equal(made, by_plan), f"scan {turn} of {len(cells)} voxels: graph and plan give other bits")
            most = max(most, len(cells))
            if turn % 50 == 19 and len(cells) > 0:
                with torch.no_grad():
                    wanted = exact(pumice.SparseTensor(cells.cpu(), features.double().cpu(), **makers.grid)).features
                apart = float((made.cpu().double() - wanted).abs().max() / wanted.abs().max())
                check(apart <= F64_BOUND, f"scan {turn} of {len(cells)} voxels: {apart:.1e} from float64")
                worst, compared = max(worst, apart), compared + 1
        graphs.wait()
        plans.wait()
    return (f"{turn + 1:,} scans of 0 to {most:,} voxels in {len(graphs._buckets)} buckets: graphs have the bits of their "
            f"plans; {compared} of them at most {worst:.1e} from float64")  # fmt: skip


def curves(count: int, device: str, seed: int, makers: Makers) -> str:
    """Compiled steps train as a loop by hand does: apart by no more than such loops are whose weights begin apart by a
    rounding, times 8, and a floor for the rounding of one pass."""
    said = []
    given = [scan(1500 + 61 * (turn % 25), seed + turn, device) for turn in range(min(count, 50))]
    for half, rounding, floor in ((False, 2.0**-20, 1e-4), (True, 2.0**-11, 1e-2)):
        net = small(makers, device, seed)
        other, apart = copy.deepcopy(net), copy.deepcopy(net)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in apart.parameters():
                parameter.mul_(1 + rounding * (torch.rand(parameter.shape, generator=generator).to(device) - 0.5))
        optimizer, scaler = adam(net), scaler_for(device) if half else None
        step = makers.compile_step(net, losses.cross_entropy, optimizer, scaler=scaler)
        loops = [ByHand(one, adam(one), scaler_for(device) if half else None) for one in (other, apart)]
        values: list[Tensor] = []
        dtype = torch.float16 if device != "cpu" else torch.bfloat16
        for turn in range(count):
            one = given[turn % len(given)]
            with torch.autocast(device.split(":")[0], dtype, enabled=half):
                values.append(torch.stack([run(*one, **makers.grid) for run in (step, *loops)]))
        step.wait()
        compiled, by_hand, near = torch.stack(values).double().cpu().unbind(1)
        bound = floor * by_hand[0] + 8 * (near - by_hand).abs().cummax(0).values
        difference = (compiled - by_hand).abs()
        name = "AMP" if half else "f32"
        check(bool(compiled.isfinite().all()), f"{name}: a loss of a compiled step is no number")
        late = (difference > bound).nonzero()
        check(len(late) == 0, f"{name}: from step {int(late[0]) if len(late) else 0} on losses differ by {difference.max():.1e}")
        check(int(step.exceeded) == 0, f"{name}: steps exceeded their room")
        check(count < 100 or compiled[-1] < 0.7 * compiled[0], f"{name}: nothing was learned")
        said.append(f"{name} {compiled[0]:.3f} to {compiled[-1]:.3f}, at most {difference.max():.1e} apart, "
                    f"{(near - by_hand).abs().max():.1e} where weights begin a rounding apart")  # fmt: skip
    return f"{count:,} steps, compiled and by hand: " + "; ".join(said)


def held(device: str) -> dict[str, int]:
    """What could grow: bytes, and objects of Python."""
    wait(device)
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * 4096
    found = {"objects": len(gc.get_objects()), "resident": resident}
    if device != "cpu":
        free, whole = torch.cuda.mem_get_info(device)
        found |= {"allocated": torch.cuda.memory_allocated(device), "reserved": torch.cuda.memory_reserved(device), "used": whole - free}
    return found


# An object or two kilobytes a step would be more than this in 10,000 steps.
MAY_GROW = {"objects": 2000, "resident": 16 << 20, "allocated": 0, "reserved": 8 << 20, "used": 16 << 20}


def memory(count: int, device: str, seed: int, makers: Makers) -> str:
    """After a tenth of the steps nothing grows any more."""
    net = small(makers, device, seed)
    step = makers.compile_step(net, losses.cross_entropy, adam(net), clip_norm=1.0)
    scans = [scan(size, seed + size, device) for size in (900, 700, 1900, 1700, 2900, 2800, 31, 33, 1800, 2700)]
    sum_of_losses = torch.zeros((), device=device)
    before: dict[str, int] = {}
    start = time.perf_counter()
    for turn in range(count):
        if turn == max(40, count // 10):
            before = held(device)
        sum_of_losses += step(*scans[turn % len(scans)], **makers.grid)
    after = held(device)
    seconds = time.perf_counter() - start
    check(bool(sum_of_losses.isfinite()), "a loss is no number")
    check(bool(before), f"{count} steps are too few to see what grows: give more than 40")
    grown = {name: after[name] - before[name] for name in before}
    for name, by in grown.items():
        check(by <= MAY_GROW[name], f"{name} has grown by {by:,} from {before[name]:,}")
    step.wait()
    return (f"{count:,} compiled steps in {seconds:.0f} s, {len(step._buckets)} buckets: "
            + ", ".join(f"{name} {by:+,}" for name, by in grown.items()))  # fmt: skip


def threads(count: int, device: str, seed: int, makers: Makers) -> str:
    """Two threads on two streams, each with a step of its own and both with one compiled model, give the bits of one
    after the other."""
    torch.manual_seed(seed)
    shared = pumice.models.MinkUNet42(4, CLASSES, width_factor=0.25).eval().to(device)
    fast = makers.compile(shared)
    scans = [scan(1900 - 37 * turn, seed + turn, device) for turn in range(6)]

    def work(number: int, stream: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        net = makes[number]
        optimizer = adam(net)
        step = makers.compile_step(net, losses.cross_entropy, optimizer)
        values, scores = [], []
        with nullcontext() if stream is None else torch.cuda.stream(stream):
            for turn in range(count):
                one = scans[(turn + number) % len(scans)]
                values.append(step(*one, **makers.grid))
                scores.append(fast(*one[:2], **makers.grid).features.sum(0))
            step.wait()
        wait(device)
        return values, scores, state_of(net, optimizer)

    with deterministic():
        for _ in range(3):
            for one in scans:  # so that all that is compared comes of a graph
                fast(*one[:2], **makers.grid)
        makes = [small(makers, device, seed + number) for number in range(2)]
        alone = [work(number, None) for number in range(2)]
        makes = [small(makers, device, seed + number) for number in range(2)]
        streams = [None if device == "cpu" else torch.cuda.Stream(device) for _ in range(2)]
        wait(device)
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(work, range(2), streams))
    check_same_work(alone, together, ["thread 0", "thread 1"], "one thread after the other")
    return f"two threads on two streams, {count:,} steps and {count:,} passes each: the bits of one after the other"


def check_same_work(alone: list[Any], together: list[Any], names: list[str], whose: str) -> None:
    """The losses, scores and weights of each are `whose` work `alone` made."""
    for name, one, other in zip(names, alone, together):
        for what, left, right in zip(("losses", "scores", "weights"), one, other):
            check(same(left, right), f"{name}: {what} are not those of {whose}")


def gpus(count: int, device: str, seed: int, makers: Makers) -> str:
    """Two threads on two GPUs, each with a step and a compiled model of its own, give the bits of one GPU after the other."""
    places = devices_of(device)
    scans = [scan(1900 - 37 * turn, seed + turn, "cpu") for turn in range(6)]
    nets = [(small(makers, "cpu", seed + number), model(seed + number)) for number in range(2)]

    def work(number: int, place: str) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """On `place`, whichever device is the thread's current one."""
        net, shown = (copy.deepcopy(one).to(place) for one in nets[number])
        optimizer = adam(net)
        step, fast = makers.compile_step(net, losses.cross_entropy, optimizer), makers.compile(shown)
        values, scores = [], []
        for turn in range(count):
            one = [part.to(place) for part in scans[(turn + number) % len(scans)]]
            values.append(step(*one, **makers.grid).cpu())
            scores.append(fast(*one[:2], **makers.grid).features.sum(0).cpu())
        step.wait()
        fast.wait()
        return values, scores, [value.cpu() for value in state_of(net, optimizer)]

    with deterministic():
        alone = [work(number, places[0]) for number in range(2)]
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(work, range(2), places))
    check_same_work(alone, together, places, f"{places[0]} alone")
    return f"two threads on {' and '.join(places)}, {count:,} steps and {count:,} passes each: the bits of one after the other"


def model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return pumice.models.MinkUNet42(4, CLASSES, width_factor=0.25).eval()


def devices_of(device: str) -> list[str]:
    """Two of them; of CPUs there is one, which both threads share."""
    if device == "cpu":
        return ["cpu", "cpu"]
    found = torch.cuda.device_count()
    check(found >= 2, f"there are {found} GPUs: this run is of two in one process")
    return ["cuda:0", "cuda:1"]


def outgrown(count: int, device: str, seed: int, makers: Makers) -> str:
    """In the middle of an epoch scans become larger, and some denser than their bucket has room for: those change nothing or
    run eagerly, as is asked for, and training is that of a loop by hand."""
    at = torch.arange(1000)
    dense = torch.stack([at * 0, at % 10, at // 10 % 10, at // 100], 1).int()
    lone = dense.clone()
    lone[:, 1:] = lone[:, 1:] * 4 + 3  # no two side by side
    middle, said = count // 2, []
    for fallback in ("raise", "eager"):
        net = small(makers, device, seed)
        other = copy.deepcopy(net)
        sgd, by_hand = (torch.optim.SGD(one.parameters(), lr=0.05, momentum=0.9, fused=True) for one in (net, other))
        step = makers.compile_step(net, losses.cross_entropy, sgd, fallback=fallback)
        loop = ByHand(other, by_hand)
        skipped, worst, rooms = 0, 0.0, []
        for turn in range(count):
            is_dense = turn >= middle and (turn - middle) % 10 == 0
            cells, features, labels = scan(1000 if turn < middle else 2900, seed + turn, device)
            if is_dense or turn % 2 == 0:  # of one size, alone or side by side
                cells = (dense if is_dense else lone).to(device)
                generator = torch.Generator().manual_seed(turn)
                features = torch.randn(1000, 4, generator=generator).to(device)
                labels = (features[:, 0] > 0).long() + (features[:, 1] > 0)
            before = state_of(net, sgd) if is_dense else []
            loss = step(cells, features, labels, **makers.grid)
            rooms.append(len(step._buckets))
            if bool(loss.isnan()):
                skipped += 1
                try:
                    step.wait()
                except pumice.UserError as error:
                    check(fallback == "raise" and is_dense, f"step {turn}, fallback {fallback!r}: {error}")
                    check(same(before, state_of(net, sgd)), f"step {turn} exceeded its room and changed something")
                    continue
                raise Different(f"step {turn}: its loss is no number, and nobody said why")
            expected = loop(cells, features, labels, **makers.grid)
            worst = max(worst, float((loss - expected).abs() / expected))
            check(worst <= 1e-2, f"step {turn}, fallback {fallback!r}: loss {float(loss):.5f}, by hand {float(expected):.5f}")
        step.wait()
        check(int(step.exceeded) == skipped or fallback == "eager", f"{skipped} steps exceeded their room, {int(step.exceeded)} were counted")
        if fallback == "raise" and device != "cpu":
            check(skipped > 0, "no step exceeded its room: this run is to meet some")
        said.append(f"{fallback!r} {skipped} steps left out, {rooms[middle - 1]} to {rooms[-1]} buckets, losses at most {worst:.1e} apart")
    return f"an epoch of {count:,} scans, fallback " + "; ".join(said)


def maps(count: int, device: str, seed: int, makers: Makers) -> str:
    """Maps of a graph are those that follow from the cells alone, entry by entry, and those of layers one by one."""
    net = tables_network().eval().to(device)
    fast = makers.compile(net)
    draw = random.Random(seed)
    learned = [size for size in (1000, 2000, 3000) for _ in range(3)]
    entries = 0
    sizes = [*learned, 0, 1, 31, 33, *(draw.randint(0, 3000) for _ in range(count))][: max(4, count) + len(learned)]
    for turn, size in enumerate(sizes):
        cells, _, _ = scan(size, seed + turn, device)
        features = tagged(cells)
        by_graph = tables_of(fast(cells, features, **makers.grid))
        with torch.no_grad():
            by_layers = tables_of(net(pumice.SparseTensor(cells, features, **makers.grid)))
        for name, (sites, table) in expected_tables(cells.cpu(), EXTENT).items():
            entries += int((table != 0).sum())
            for who, made in (("the graph", by_graph[name]), ("the layers", by_layers[name])):
                check(torch.equal(made[0], sites), f"scan {turn} of {len(cells)} voxels, {name}: {who} made other sites")
                differing = int((made[1] != table).sum())
                check(differing == 0, f"scan {turn} of {len(cells)} voxels, {name}: {differing} entries of {who} differ")
    fast.wait()
    return f"{len(sizes):,} scans, {entries:,} entries of {len(by_graph)} maps: the same in graphs, layer by layer and by the cells"


RUNS: dict[str, tuple[Callable[[int, str, int, Makers], str], int]] = {
    "replay": (replay, 1000), "curves": (curves, 500), "memory": (memory, 10_000), "threads": (threads, 200),
    "gpus": (gpus, 200), "outgrown": (outgrown, 200), "maps": (maps, 1000),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+", choices=(*RUNS, "all"))
    parser.add_argument("--count", type=int, help="of scans, steps or turns (default: that of the run)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.count is not None and options.count < 1:
        parser.error(f"--count {options.count}: give at least 1")
    status = 0
    for name in RUNS if "all" in options.run else options.run:
        run, count = RUNS[name]
        if name == "gpus" and "all" in options.run and options.device != "cpu" and torch.cuda.device_count() < 2:
            print("gpus: left out: there is one GPU", flush=True)
            continue
        start = time.perf_counter()
        try:
            said = run(options.count or count, options.device, options.seed, Makers())
        except Exception as error:  # the other runs go on
            said, status = f"FAILS: {type(error).__name__}: {str(error)[:400]}", 1
        print(f"{name}: {said}; {time.perf_counter() - start:.0f} s", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
