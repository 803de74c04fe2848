"""Seconds from a fresh process to its first result, beyond importing PyTorch: with kernels to be
compiled, and with those in the cache.

    python benchmarks/python/first_forward.py [--network minkunet42|centerpoint] [--scan scan.bin]
        [--train] [--dtype float16] [--device cuda]

Each figure is a process of its own. "import" is of pumice; "network" makes it and moves it to the
device, "first" is the first pass over a scan that was read before, "second" the next one. Goals on a
CUDA device: 2 s with kernels at hand, 20 s when all are compiled. With --device cpu no kernels are
compiled, and both processes do the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def one_process(options: argparse.Namespace) -> None:
    import torch

    device = torch.device(options.device)
    if device.type == "cuda":
        torch.zeros(1, device=device)  # the context is PyTorch's
    start = time.perf_counter()
    import pumice  # noqa: F401

    imported = time.perf_counter()
    from workloads import model, workload

    work = workload(options.network, options.scan, 1, device)
    dtype = getattr(torch, options.dtype or ("float16" if device.type == "cuda" else "float32"))

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    wait()
    read = time.perf_counter()
    net = model(options.network).to(device).train(options.train)
    wait()
    made = time.perf_counter()

    def run() -> None:
        with (
            torch.set_grad_enabled(options.train),
            torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32),
        ):
            loss = work.loss(net(work.sparse()).features)
        if options.train:
            loss.backward()
        wait()

    run()
    first = time.perf_counter()
    run()
    second = time.perf_counter()
    seconds = {
        "import": imported - start,
        "network": made - read,
        "first": first - made,
        "second": second - first,
    }
    print(json.dumps(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")
    parser.add_argument("--network", default="minkunet42", choices=("minkunet42", "centerpoint"))
    parser.add_argument("--scan", nargs="*", default=[])
    parser.add_argument("--train", action="store_true", help="a step, not a pass without gradients")
    parser.add_argument("--dtype", help="default: float16 on a CUDA device, float32 on the CPU")
    parser.add_argument("--one-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_process:
        one_process(options)
        return
    if options.device != "cpu":
        check = "import sys, torch; sys.exit(not torch.cuda.is_available())"   # this process imports no PyTorch
        if subprocess.run([sys.executable, "-c", check], check=False).returncode != 0:
            sys.exit(
                f"first_forward.py: --device {options.device} needs a CUDA device, and PyTorch finds none; "
                "--device cpu runs on the processor"
            )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PUMICE_CACHE": folder}
        for name in ("nothing compiled yet", "kernels in the cache"):
            command = [sys.executable, *sys.argv, "--one-process"]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
            if done.returncode != 0:   # which has said why
                sys.exit(done.returncode)
            seconds = json.loads(done.stdout.splitlines()[-1])
            beyond = seconds["import"] + seconds["network"] + seconds["first"]
            parts = ", ".join(f"{part} {value:.2f}" for part, value in seconds.items())
            print(f"{name:24s} {beyond:6.2f} s beyond importing PyTorch ({parts})", flush=True)


if __name__ == "__main__":
    main()
