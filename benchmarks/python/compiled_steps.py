"""Training steps from Python, by hand and compiled (`pumice.compile_step`), maps made anew in every step: milliseconds.

    python benchmarks/python/compiled_steps.py [--scan scan.bin ...] [--sweeps sweep.bin ...] [--passes 20] [--rounds 3]
        [--cases minkunet42 ...] [--dtype float16] [--spconv]

A step is forward under autocast, loss, backward, GradScaler (float16) and fused SGD with momentum. Columns as in
compiled.py. Steps take scans in turn; both ways take turns in rounds and have a network of their own, of which the
first losses are compared. "peak": the most memory that PyTorch took from the GPU in steps of this way, once recorded,
beside what it had before this way's network was made. `--spconv` adds MinkUNet42 as users of spconv write it.
For a GPU; without one the networks are small, and both columns run the same layers in float32.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch
from compiled import CASES, Timed, parser_of, scenes, written_for_spconv
from training_step import waiter
from workloads import Workload, model

import pumice
from pumice import losses

TOLERANCE = 2e-2  # of losses in half precision after the parameters have changed five times
CHECKED = 6  # losses


def mean_square(output: pumice.SparseTensor, part: torch.Tensor) -> torch.Tensor:
    """`part`: one over how many numbers there are, a scalar; rows that are not in use are zeros."""
    return output.features.float().square().sum() * part


mean_square.ignore_index = -1  # no label is one


class Way:
    """A network with its optimiser, trained by hand or compiled."""

    def __init__(
        self, network: str, net: torch.nn.Module, of_spconv: bool, device: torch.device, dtype: torch.dtype, compiled: bool
    ) -> None:
        self.network, self.of_spconv, self.device, self.dtype = network, of_spconv, device, dtype
        self.net = net.to(device).train()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9, fused=True)
        self.scaler = torch.amp.GradScaler(device.type, init_scale=1024.0, enabled=dtype == torch.float16)
        self.loss: Callable[..., torch.Tensor] = losses.cross_entropy if network == "minkunet42" else mean_square
        self.compiled = (
            pumice.compile_step(self.net, self.loss, self.optimizer, scaler=self.scaler) if compiled else None
        )

    def __call__(self, work: Workload) -> torch.Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            if self.of_spconv:
                from pumice.compat import spconv

                x = spconv.SparseConvTensor(work.features, work.cells, work.spatial_shape, work.batch_size)
                if self.compiled is not None:
                    return self.compiled(x, work.labels)
                output = self.net(x)
                loss = self.loss(getattr(output, "features", output), work.labels)
                return self.trained(loss)
            if self.compiled is not None:
                shape = work.spatial_shape if self.network == "centerpoint" else None  # which cuts its levels
                return self.compiled(
                    work.cells, work.features, work.labels, batch_size=work.batch_size, spatial_shape=shape
                )
            output = self.net(work.sparse())
            loss = self.loss(output.features if self.network == "minkunet42" else output, work.labels)
        return self.trained(loss)

    def trained(self, loss: torch.Tensor) -> torch.Tensor:
        """Changes the parameters by the gradients of a loss."""
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()


def taken(device: torch.device) -> int:
    """Bytes that PyTorch has from the GPU and cannot give back."""
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_reserved()


def compare(name: str, works: list[Workload], make: Callable[[bool], Way], options: argparse.Namespace) -> None:
    device = works[0].cells.device
    wait = waiter(device)
    made, curves, peaks = [], [], []
    for is_compiled in (False, True):
        before = taken(device)
        way = make(is_compiled)
        start = time.perf_counter()
        curves.append(torch.stack([way(works[turn % len(works)]) for turn in range(CHECKED)]))
        for work in works * 3:
            way(work)
        wait()
        made.append((way, time.perf_counter() - start))
        taken(device)
        for work in works:
            way(work)
        peaks.append(torch.cuda.max_memory_reserved() - before if device.type == "cuda" else 0)
    if not torch.allclose(curves[0], curves[1], rtol=TOLERANCE):
        sys.exit(f"{name}: losses of {curves[0].tolist()} by hand and {curves[1].tolist()} compiled")
    timed = [Timed(way, works, wait) for way, _ in made]
    for _ in range(options.rounds):
        for one in timed:
            one.passes(options.passes)
    step = made[1][0].compiled
    assert step is not None
    step.wait()
    print(f"{name:34s} {len(works[0].cells):7d} voxels  by hand {timed[0]}  compiled {timed[1]}", flush=True)
    print(
        f"{'':34s} {made[1][1]:.1f} s until recorded, peak {peaks[0] / 2**20:.0f} and {peaks[1] / 2**20:.0f} MiB, losses "
        f"differ by {float((curves[0] - curves[1]).abs().max()):.1e}, {step}, {int(step.overflows)} overflows",
        flush=True,
    )


def steps_of(case: str, options: argparse.Namespace, device: torch.device, first: int = 0) -> tuple[str, float, list[Workload]]:
    """(network, width factor, what steps take in turn, beginning with scan `first`)."""
    network, factor, batch = CASES[case]
    scans = options.sweeps if network == "centerpoint" and options.sweeps else options.scan
    first %= max(1, len(scans))
    works = scenes(network, [*scans[first:], *scans[:first]], batch, device)
    if network == "centerpoint":
        for work in works:
            work.labels = torch.tensor(1e-6, device=device)  # the part of `mean_square`
    return network, factor if device.type == "cuda" else 0.125, works


def main() -> None:
    parser = parser_of(__doc__, passes=20)
    parser.add_argument("--dtype", help="default: float16 on a CUDA device, float32 on the CPU")
    options = parser.parse_args()
    device = torch.device(options.device)
    on_gpu = device.type == "cuda"
    dtype = getattr(torch, options.dtype or ("float16" if on_gpu else "float32"))
    print(f"milliseconds on {torch.cuda.get_device_name() if on_gpu else 'the CPU'}, PyTorch {torch.__version__}, {dtype}")
    for case in options.cases:
        network, factor, works = steps_of(case, options, device)
        for of_spconv in (False, True) if options.spconv and case == "minkunet42" else (False,):

            def make(compiled: bool) -> Way:
                net = written_for_spconv(factor) if of_spconv else model(network, factor)
                return Way(network, net, of_spconv, device, dtype, compiled)

            compare(f"{case}, for spconv" if of_spconv else case, works, make, options)


if __name__ == "__main__":
    main()
