#!/usr/bin/env python3
"""MinkUNet42 written for spconv, with spconv and with Pumice behind the same imports, on one GPU in one process.

    python benchmarks/peers/one_import.py [--style layers|containers] [--scan scan.bin ...] [--batch 1]
        [--rounds 6] [--passes 20] [--record FILE]

Both have the same weights, and nobody told Pumice more than the changed import; maps are made anew in every
pass. Inference and training steps, each with `.half()` and under autocast; inference also with weights that
the user promised not to change (`pumice.nn.freeze`). Rounds alternate; a round's figure is the median over its
passes of the time from an idle device to an idle device, and the table has the medians over rounds with their
lowest and highest, then ratios of the peer's faster way to each of ours.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
import types
from pathlib import Path

import torch

if not torch.cuda.is_available():
    sys.exit("one_import.py needs a CUDA device, and PyTorch finds none")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from workloads import CLASSES, workload

NAMES = ("spconv", "spconv.pytorch")
TOLERANCE = 1e-3


def networks_with(package):
    """spconv_networks.py where `import spconv.pytorch` brings this package."""
    kept = {name: sys.modules[name] for name in NAMES if name in sys.modules}
    if package == "pumice":
        import pumice.compat.spconv

        stand_in = types.ModuleType("spconv")
        stand_in.pytorch = pumice.compat.spconv
        sys.modules.update({"spconv": stand_in, "spconv.pytorch": pumice.compat.spconv})
    spec = importlib.util.spec_from_file_location(f"networks_of_{package}", HERE / "spconv_networks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.update(kept)
    return module


class Case:
    """One way to run a network: `half` converts it, otherwise autocast does."""

    def __init__(self, library, module, net, work, half, training, frozen=False):
        self.name = f"{library}, {'.half()' if half else 'autocast'}{', frozen' if frozen else ''}"
        self.work, self.half = work, half
        self.net = net.half() if half else net
        self.features = work.features.half() if half else work.features
        self.tensor = module.spconv.SparseConvTensor
        self.net.train(training)
        self.run = self.train if training else self.infer
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4, momentum=0.9, foreach=True)
        if frozen:
            import pumice

            pumice.nn.freeze(self.net)

    def output(self):
        work = self.work
        with torch.autocast("cuda", dtype=torch.float16, enabled=not self.half):
            return self.net(self.tensor(self.features, work.cells, work.spatial_shape, work.batch_size))

    def infer(self):
        with torch.no_grad():
            self.output()

    def train(self):
        self.optimizer.zero_grad(set_to_none=True)
        (self.work.loss(self.output().float()) * 64).backward()
        self.optimizer.step()

    def round_ms(self, passes):
        times = []
        for _ in range(passes):
            torch.cuda.synchronize()
            start = time.perf_counter()
            self.run()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times)


def measure(cases, rounds, passes):
    for case in cases:
        case.round_ms(15)
    figures = {case.name: [] for case in cases}
    for turn in range(rounds):
        for case in cases if turn % 2 == 0 else reversed(cases):
            figures[case.name].append(case.round_ms(passes))
    return figures


def report(what, figures):
    medians = {name: statistics.median(times) for name, times in figures.items()}
    peer = min(value for name, value in medians.items() if name.startswith("spconv"))
    print(f"\n| {what} | ms | lowest, highest | against spconv's faster way |\n|---|---|---|---|")
    for name, times in figures.items():
        print(f"| {name} | {medians[name]:.2f} | {min(times):.2f}, {max(times):.2f} | {peer / medians[name]:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--style", default="layers", choices=("layers", "containers"))
    parser.add_argument("--scan", nargs="*", default=[])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--record")
    options = parser.parse_args()
    work = workload("minkunet42", options.scan, options.batch, torch.device("cuda"))
    modules = {package: networks_with(package) for package in ("spconv", "pumice")}
    torch.manual_seed(0)
    state = modules["spconv"].MinkUNet42(classes=CLASSES, style=options.style).state_dict()

    def case(package, *how):
        net = modules[package].MinkUNet42(classes=CLASSES, style=options.style).to("cuda")
        net.load_state_dict(state)
        return Case(package, modules[package], net, work, *how)

    # Compared in evaluation, in float32, and left.
    with torch.no_grad():
        scores = []
        for package in modules:
            one = case(package, False, False)
            one.half = True  # no autocast
            scores.append(one.output())
    error = ((scores[0] - scores[1]).abs().max() / scores[0].abs().max()).item()
    print(
        f"MinkUNet42 in spconv's layers, style {options.style}, {len(work.features)} voxels, batch {options.batch}, "
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; scores differ by {error:.1e}"
    )
    if not error <= TOLERANCE:
        sys.exit("the two do not compute the same")
    results = {}
    ways = [(package, half, False) for package in ("pumice", "spconv") for half in (True, False)]
    frozen = [("pumice", half, False, True) for half in (True, False)]
    for what, given in (
        ("inference", ways + frozen),
        ("training step", [(package, half, True) for package, half, _ in ways]),
    ):
        results[what] = measure([case(*one) for one in given], options.rounds, options.passes)
        report(what, results[what])
    if options.record:
        Path(options.record).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
