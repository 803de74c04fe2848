#!/usr/bin/env python3
"""Pumice and spconv on one GPU in one process: training steps in mixed precision and inference, maps
made anew in every pass.

    python benchmarks/peers/side_by_side_cuda.py [--network minkunet42|centerpoint] [--scan scan.bin ...]
        [--batch 1] [--factor 1.0] [--rounds 15] [--record FILE]

Both networks have the same weights, and their scores are compared in float32 before anything is
measured; a difference ends the run with exit code 1. Then rounds of ten passes each, one of ours, one
of theirs, in changing order. A round gives one ratio; the medians and quartiles of times and ratios
are printed as a Markdown table.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

if not torch.cuda.is_available():
    sys.exit("side_by_side_cuda.py needs a CUDA device, and PyTorch finds none; side_by_side.py measures on the CPU")

import spconv as spconv_package
import spconv.pytorch as spconv
from spconv_networks import SPVNAS, CenterPointEncoder, MinkUNet42, pumice_layout

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from workloads import CLASSES, model, workload

import pumice

PASSES = 10
# Sums of up to 27 * 384 products in float32 through 49 layers, in another order.
TOLERANCE = 1e-3


class Ours:
    def __init__(self, net, work):
        self.net, self.work = net, work

    def __call__(self):
        return self.net(self.work.sparse()).features


class Theirs:
    """The indices are not changed by a network, so they are made once."""

    def __init__(self, net, work):
        self.net, self.work = net, work

    def __call__(self):
        work = self.work
        x = spconv.SparseConvTensor(work.features, work.cells, work.spatial_shape, work.batch_size)
        return self.net(x)


def peer_of(network, factor, ours):
    """spconv's network with the weights of `ours`."""
    widths = [max(1, int(factor * width + 0.5)) for width in SPVNAS]
    net = CenterPointEncoder() if network == "centerpoint" else MinkUNet42(widths, classes=CLASSES)
    state = ours.state_dict()
    for name, value in net.state_dict().items():
        laid_out = pumice_layout(name, value.detach().cpu().numpy())
        given = state[name].detach().cpu()
        if tuple(laid_out.shape) != tuple(given.shape):
            sys.exit(f"{name}: theirs is {tuple(laid_out.shape)}, ours {tuple(given.shape)}")
        if value.dim() == 5:  # [C_out, k, k, k, C_in]
            value.copy_(given.permute(2, 0, 1).reshape(value.shape))
        elif name.endswith("downsample.0.weight"):
            value.copy_(given[0].T)
        else:
            value.copy_(given)
    return net


def trained(run, work):
    """A step as people write it: autocast, cross entropy, GradScaler, SGD."""
    optimizer = torch.optim.SGD(run.net.parameters(), lr=1e-4, momentum=0.9, foreach=True)
    scaler = torch.amp.GradScaler("cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = work.loss(run())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def inferred(run, half):
    def infer():
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16, enabled=half):
            run()

    return infer


def round_ms(run):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(PASSES):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / PASSES * 1e3


def in_pairs(ours, theirs, rounds):
    pairs = []
    for turn in range(rounds + 2):
        first, second = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
        a, b = round_ms(first), round_ms(second)
        if turn >= 2:  # the first two warm both up
            pairs.append((a, b) if turn % 2 == 0 else (b, a))
    return pairs


def peak_gib(run):
    """Of a step once the first ones are over, in which rooms are learned and algorithms chosen."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**30


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="minkunet42", choices=("minkunet42", "centerpoint"))
    parser.add_argument("--scan", nargs="*", default=[])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--record")
    options = parser.parse_args()
    device = torch.device("cuda")
    work = workload(options.network, options.scan, options.batch, device)
    ours_net = model(options.network, options.factor)
    theirs_net = peer_of(options.network, options.factor, ours_net).to(device)
    ours, theirs = Ours(ours_net.to(device), work), Theirs(theirs_net, work)

    with torch.no_grad():
        left, right = ours().float(), theirs().float()  # norms take this scan's statistics
    if options.network == "centerpoint":  # its outputs are new sites, in another order
        left, right = (torch.sort(scores, 0).values for scores in (left, right))
    if left.shape != right.shape:
        sys.exit(f"ours has shape {tuple(left.shape)}, theirs {tuple(right.shape)}")
    error = ((left - right).abs().max() / right.abs().max()).item()
    print(
        f"{options.network}, factor {options.factor}, {len(work.features)} voxels, batch "
        f"{options.batch}, {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, spconv "
        f"{spconv_package.__version__}, pumice {pumice.__version__}; scores differ by {error:.1e}"
    )
    if not error <= TOLERANCE:
        sys.exit("the two networks do not compute the same")

    cases = [("training step, mixed precision", trained(ours, work), trained(theirs, work))]
    memory = [peak_gib(case) for case in cases[0][1:]]
    results = []

    def report(name, pairs):
        ratios = sorted(b / a for a, b in pairs)
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        a, b = (statistics.median(times) for times in zip(*pairs))
        print(f"| {name} | {a:.2f} | {b:.2f} | {middle:.2f} ({low:.2f}-{high:.2f}) |", flush=True)
        results.append({"name": name, "pairs_ms": pairs})

    print("\n| | Pumice, ms | spconv, ms | ratio (quartiles) |\n|---|---|---|---|")
    report(cases[0][0], in_pairs(*cases[0][1:], options.rounds))
    for net in (ours_net, theirs_net):
        net.zero_grad(set_to_none=True)
        net.eval()
    report(
        "inference, autocast",
        in_pairs(inferred(ours, True), inferred(theirs, True), options.rounds),
    )
    pumice.nn.freeze(ours_net)
    report(
        "inference, autocast, weights frozen",
        in_pairs(inferred(ours, True), inferred(theirs, True), options.rounds),
    )
    print(f"\nPeak memory of a training step: {memory[0]:.2f} GiB, spconv {memory[1]:.2f} GiB")
    if options.record:
        Path(options.record).write_text(json.dumps({"memory_gib": memory, "results": results}))


if __name__ == "__main__":
    main()
