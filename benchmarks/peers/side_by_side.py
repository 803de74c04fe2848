#!/usr/bin/env python3
"""Pumice and spconv's CPU build on one scan in one run.

    python benchmarks/peers/side_by_side.py SCAN --threads 2 --rounds 5

First it checks that both compute the same: voxels, number of pairs, one layer, the whole network with
the same weights. The peer does this on one thread: on several, convolutions of spconv 2.3.8's CPU
build now and then give other results, in a few rows. Then it measures in pairs: one of ours, one of
theirs, in changing order, each after an unmeasured run of its own. A machine whose speed drifts slows
both halves of a pair, so a pair gives one ratio, and the median and the quartiles are those of the
ratios.

Prints a Markdown table; --record writes everything measured as JSON. Exit code 1: results differ.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

import spconv_cpu as peer

CHANNELS = 96
# Sums of up to 27 * 384 products in float32, in another order; relative to the largest value.
LAYER_TOLERANCE = 1e-5
NETWORK_TOLERANCE = 1e-4
# Load a thread above which others are at work.
BUSY = 0.25


class Pumice:
    """The command-line program, asked for JSON."""

    def __init__(self, program, scan, voxel, threads):
        self.program = program
        self.scan = ["--layout", scan.layout, str(scan.path)] if scan.layout else [str(scan.path)]
        self.bench_scan = ["--scan", str(scan.path)] + (["--layout", scan.layout] if scan.layout else [])
        self.voxel = ["--voxel", repr(voxel)]
        self.threads = ["--threads", str(threads)]

    def call(self, *arguments):
        command = [self.program, *map(str, arguments), *self.threads, "--json"]
        # Linux carries the peak memory of a process over to what it turns into, so a child made
        # straight from here would report at least ours. The shell in between is small.
        small = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]
        done = subprocess.run(small + command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def version(self):
        return subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def voxelize(self, out):
        self.call("voxelize", *self.scan, *self.voxel, "--out", out)
        return load_file(out)

    def conv(self, tensors, folder):
        save_file(tensors, folder / "in.safetensors")
        record = self.call("conv", folder / "in.safetensors", folder / "out.safetensors")
        return record, load_file(folder / "out.safetensors")

    def network(self, weights, out=None, repeat=1):
        more = ["--out", out] if out else []
        return self.call(
            "run", "minkunet42", *self.scan, *self.voxel, "--weights", weights, "--repeat", repeat, *more
        )

    def layer_rows(self):
        """Milliseconds by row of `pumice bench layers`, each measured once after one warm-up."""
        record = self.call(
            "bench", "layers", *self.bench_scan, *self.voxel,
            "--levels", 1, "--channels", CHANNELS, "--repeat", 1,
        )  # fmt: skip
        return {row["name"]: row["median_ms"] for row in record["measurements"]}


class Scan:
    """Positions of a float32 x y z intensity file, or of a .ply that `pumice simulate` wrote."""

    def __init__(self, path, layout):
        self.path, self.layout = path, layout
        if path.suffix == ".ply":
            self.positions = self.from_ply(path.read_bytes())
        else:
            columns = int(layout[4:]) if layout else 4
            if layout and not layout.startswith("f32x"):
                sys.exit(f"--layout {layout}: NumPy's side reads f32xN here")
            self.positions = np.fromfile(path, np.float32).reshape(-1, columns)[:, :3]

    @staticmethod
    def from_ply(data):
        types = {"float": "<f4", "double": "<f8", "int": "<i4", "uint": "<u4", "short": "<i2",
                 "ushort": "<u2", "char": "<i1", "uchar": "<u1"}  # fmt: skip
        end = data.index(b"end_header\n") + len(b"end_header\n")
        words = [line.split() for line in data[:end].decode("ascii").splitlines()]
        fields = [(w[2], types[w[1]]) for w in words if w[0] == "property"]
        count = next(int(w[2]) for w in words if w[:2] == ["element", "vertex"])
        rows = np.frombuffer(data, np.dtype(fields), count, end)
        return np.stack([rows["x"], rows["y"], rows["z"]], 1)

    def unique_cells(self, voxel):
        cells = np.floor(self.positions / np.float32(voxel)).astype(np.int32)
        return np.unique(cells, axis=0, return_inverse=True)


def elapsed_ms(body):
    start = time.perf_counter()
    body()
    return (time.perf_counter() - start) * 1e3


def relative_error(ours, theirs):
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


class Comparison:
    """One quantity: `ours` and `theirs` return milliseconds of one measured run."""

    def __init__(self, name, other, ours, theirs):
        self.name, self.other, self.ours, self.theirs = name, other, ours, theirs
        self.pairs = []

    def measure(self, turn):
        first, second = (self.ours, self.theirs) if turn % 2 == 0 else (self.theirs, self.ours)
        a, b = first(), second()
        self.pairs.append((a, b) if turn % 2 == 0 else (b, a))

    def record(self):
        ours, theirs = zip(*self.pairs)
        ratios = [b / a for a, b in self.pairs]
        if len(ratios) > 1:
            low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        else:
            low = middle = high = ratios[0]
        return {
            "name": self.name,
            "peer": self.other,
            "ours_ms": list(ours),
            "peer_ms": list(theirs),
            "ours_median_ms": statistics.median(ours),
            "peer_median_ms": statistics.median(theirs),
            "ratio_median": middle,
            "ratio_quartiles": [low, high],
        }


class Bench:
    """Everything that is compared, prepared once."""

    def __init__(self, options, folder):
        self.scan = Scan(options.scan, options.layout)
        self.voxel = options.voxel
        self.threads = options.threads
        self.folder = folder
        self.pumice = Pumice(options.pumice, self.scan, options.voxel, options.threads)
        self.voxels = self.pumice.voxelize(folder / "voxels.safetensors")
        self.sites = peer.Sites(self.voxels["coords"])
        self.features = torch.from_numpy(self.voxels["features"])
        self.network = peer.random_network(self.sites, self.features)
        self.weights = folder / "weights.safetensors"
        save_file(peer.pumice_weights(self.network), self.weights)
        self.layer = peer.submanifold(CHANNELS, CHANNELS, "level0").eval()
        wide = torch.randn(len(self.features), CHANNELS, generator=torch.Generator().manual_seed(1))
        self.wide = self.sites.tensor(wide)
        self.with_map = self.layer(self.wide)   # carries the map
        self.peer_against_itself = 0.0   # its network on all threads beside one
        self.forwards = []   # of ours: (peak MiB, share of the maps)

    # What both must agree on: (what, measure of disagreement, the most it may be).
    def checks(self):
        cells, inverse = self.scan.unique_cells(self.voxel)
        order = np.lexsort(self.voxels["coords"][:, :0:-1].T)   # ours in NumPy's order
        same = len(cells) == len(order) and np.array_equal(self.voxels["coords"][order, 1:], cells)
        same = same and np.array_equal(order[inverse.ravel()], self.voxels["point_to_voxel"])
        yield "voxels, and the voxel of every point", 0.0 if same else 1.0, 0.0

        weight = peer.pumice_layout("", self.layer.weight.detach().numpy())
        tensors = {
            "coords": self.voxels["coords"],
            "features": self.wide.features.numpy(),
            "weight": np.ascontiguousarray(weight),
        }
        record, result = self.pumice.conv(tensors, self.folder)
        yield "pairs of the 3x3x3 map", float(abs(record["pairs"] - self.sites.submanifold_pairs())), 0.0
        torch.set_num_threads(1)
        expected = self.layer(self.wide).features.numpy()
        yield f"layer {CHANNELS} > {CHANNELS}", relative_error(result["features"], expected), LAYER_TOLERANCE

        out = self.folder / "scores.safetensors"
        self.pumice.network(self.weights, out)
        scores = load_file(out)
        if not np.array_equal(scores["coords"], self.voxels["coords"]):
            sys.exit("rows of `pumice run` and `pumice voxelize` differ")
        expected = self.network(self.sites.tensor(self.features)).numpy()
        torch.set_num_threads(self.threads)
        yield "MinkUNet42, same weights", relative_error(scores["features"], expected), NETWORK_TOLERANCE
        again = self.network(self.sites.tensor(self.features)).numpy()
        self.peer_against_itself = relative_error(again, expected)

    def our_network(self):
        record = self.pumice.network(self.weights, repeat=2)
        self.forwards.append((record["peak_mib"], record["map_ms"] / record["total_ms"][-1]))
        return record["total_ms"][-1]

    def our_rows(self, *names):
        rows = self.pumice.layer_rows()
        missing = [name for name in names if name not in rows]
        if missing:
            sys.exit(f"pumice bench layers has no row {', '.join(missing)}; its rows are {', '.join(rows)}")
        return sum(rows[name] for name in names)

    @staticmethod
    def warm(body):
        body()
        return elapsed_ms(body)

    def comparisons(self):
        voxels = f"{len(self.features):,} voxels"
        return {
            "network": Comparison(
                f"MinkUNet42 forward, maps included ({voxels})", peer.NAME, self.our_network,
                lambda: self.warm(lambda: self.network(self.sites.tensor(self.features))),
            ),
            "layer": Comparison(
                f"3x3x3 layer {CHANNELS} > {CHANNELS}, map at hand", peer.NAME,
                lambda: self.our_rows("forward level 0"),
                lambda: self.warm(lambda: self.layer(self.with_map)),
            ),
            "map": Comparison(
                "3x3x3 kernel map from int32 coordinates", peer.NAME,
                lambda: self.our_rows("coordinates level 0", "map level 0"),
                lambda: self.warm(self.sites.submanifold_map),
            ),
            "voxelize": Comparison(
                f"voxelise {len(self.scan.positions):,} points", f"numpy.unique {np.__version__}",
                lambda: self.our_rows("voxelize"),
                lambda: self.warm(lambda: self.scan.unique_cells(self.voxel)),
            ),
        }  # fmt: skip


def machine():
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return {"processor": model, "processors": os.cpu_count(), "load_before": os.getloadavg()[0]}


def markdown(record):
    lines = [
        "| what | ours ms | theirs ms | peer | ratio, median | quartiles |",
        "|---|---|---|---|---|---|",
    ]
    for row in record["comparisons"]:
        low, high = row["ratio_quartiles"]
        lines.append(
            f"| {row['name']} | {row['ours_median_ms']:.1f} | {row['peer_median_ms']:.1f} | {row['peer']} "
            f"| {row['ratio_median']:.2f} | {low:.2f}–{high:.2f} |"
        )
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scan", type=Path, help="float32 x y z intensity, or a .ply of `pumice simulate`")
    parser.add_argument("--layout", default="", help="of a raw scan: f32x5, …")
    parser.add_argument("--voxel", type=float, default=0.05, help="metres (default 0.05)")
    parser.add_argument("--pumice", default="build/release/bin/pumice", help="the program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each comparison")
    parser.add_argument("--record", type=Path, help="JSON file to write")
    parser.add_argument("--only", nargs="+", choices=["network", "layer", "map", "voxelize"])
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    record = {"machine": machine(), "threads": options.threads, "scan": options.scan.name, "voxel": options.voxel}
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        bench = Bench(options, Path(folder))
        record["versions"] = {"ours": bench.pumice.version(), "peer": peer.NAME,
                              "torch": torch.__version__, "numpy": np.__version__}  # fmt: skip
        print(f"{record['machine']['processor']}, {options.threads} threads, float32; load {os.getloadavg()[0]:.2f}; "
              f"{record['versions']['ours']}, {peer.NAME}, torch {torch.__version__}\n")  # fmt: skip

        record["agreement"] = []
        for what, error, limit in bench.checks():
            record["agreement"].append({"what": what, "error": error, "limit": limit})
            print(f"{'same' if error <= limit else 'DIFFERENT'}: {what} ({error:.2g}, limit {limit:g})", flush=True)
        record["peer_against_itself"] = bench.peer_against_itself
        print(f"{peer.NAME} on {options.threads} threads beside itself on one: {bench.peer_against_itself:.2g}")
        if any(check["error"] > check["limit"] for check in record["agreement"]):
            return 1

        if record["machine"]["load_before"] > BUSY * options.threads:
            print(f"\nThe machine was busy before this began (load {record['machine']['load_before']:.1f}): the peer's "
                  "threads wait for each other more often than ours, so the ratios flatter us. Measure when it is quiet.")  # fmt: skip
        comparisons = bench.comparisons()
        chosen = [comparisons[name] for name in options.only or comparisons]
        for turn in range(options.rounds):
            for comparison in chosen:
                comparison.measure(turn)
                ours, theirs = comparison.pairs[-1]
                print(f"{turn + 1}/{options.rounds} {comparison.name}: {ours:.1f} and {theirs:.1f} ms, "
                      f"{theirs / ours:.2f} times", file=sys.stderr, flush=True)  # fmt: skip
        record["comparisons"] = [comparison.record() for comparison in chosen]
        if bench.forwards:
            peaks, shares = zip(*bench.forwards)
            record["our_network"] = {"peak_mib": statistics.median(peaks), "maps_share": statistics.median(shares)}

    print("\n" + markdown(record))
    if bench.forwards:
        print(f"\nPumice's network run: peak resident memory {record['our_network']['peak_mib']:.0f} MiB, "
              f"maps {record['our_network']['maps_share']:.1%} of the forward pass")  # fmt: skip
    print(f"Ratios: median of {options.rounds} pairs, each run after an unmeasured one")
    if options.record:
        options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
