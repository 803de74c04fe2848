#!/usr/bin/env python3
"""Draws the latency of a network against the voxels of its scans, with percentiles.

    pumice run minkunet42 scan.bin --repeat 100 --json > 1.json      # one file a scan
    tools/plot_latency.py 1.json 2.json … latency.svg

A point is the median of the runs of one scan (all but the first three), its whisker goes from the 5th to the 95th
percentile, and a triangle is the 99th. With --graph the time is the device's, from coordinates to scores; else it is
that of the pass. Files of several networks or precisions are series of their own. Needs nothing but Python.
"""

import json
import math
import sys
from pathlib import Path

from svg_chart import frame, human, marker, page, text

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 210, 48, 64   # margins
COLOURS = ["#2f6db5", "#c2571a", "#3b8a3e", "#7b4ea3", "#8a6d3b"]
WARMUPS = 3


def percentile(values, share):
    """The smallest value that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def point_of(record, name):
    """(series, voxels, {percentile: ms})"""
    times = record["device_ms"] or record["total_ms"]
    times = times[WARMUPS:]
    if len(times) < 5:
        sys.exit(f"{name}: {len(times) + WARMUPS} runs; percentiles need 8 or more, as with --repeat 100")
    shares = {share: percentile(times, share) for share in (0.05, 0.5, 0.95, 0.99)}
    return f'{record["network"]} {record["precision"]}', record["voxels"], shares


def ticks(largest):
    """Multiples of a round step, four to ten of them."""
    power = 10.0 ** math.floor(math.log10(largest))
    step = next(power * part for part in (0.1, 0.2, 0.25, 0.5, 1) if largest / (power * part) <= 10)
    return [number * step for number in range(int(1.05 * largest / step) + 1)]


def draw(points):
    most_voxels = max(voxels for _, voxels, _ in points)
    most_ms = max(shares[0.99] for _, _, shares in points)

    def x(voxels):
        return LEFT + (WIDTH - LEFT - RIGHT) * voxels / (1.05 * most_voxels)

    def y(ms):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ms / (1.05 * most_ms)

    parts = frame(
        (LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM), "Latency of one scan against its voxels", ("voxels", "ms"),
        [(x(value), human(value)) for value in ticks(most_voxels)], [(y(value), f"{value:g}") for value in ticks(most_ms)],
    )  # fmt: skip
    names = list(dict.fromkeys(name for name, _, _ in points))
    for name, voxels, shares in points:
        colour = COLOURS[names.index(name) % len(COLOURS)]
        at, low, high = x(voxels), y(shares[0.05]), y(shares[0.95])
        parts.append(
            f'<path d="M{at:.1f} {low:.1f}V{high:.1f}M{at - 4:.1f} {low:.1f}h8M{at - 4:.1f} {high:.1f}h8" '
            f'stroke="{colour}" fill="none"/>'
        )
        parts.append(marker("circle", at, y(shares[0.5]), colour))
        parts.append(marker("triangle", at, y(shares[0.99]), colour))
    for place, name in enumerate(names):
        row = TOP + 20 + 22 * place
        parts.append(marker("circle", WIDTH - RIGHT + 22, row - 4, COLOURS[place % len(COLOURS)]))
        parts.append(text(WIDTH - RIGHT + 36, row, name, "start"))
    row = TOP + 36 + 22 * len(names)
    for words in ("circle: median", "whisker: 5 % to 95 %", "triangle: 99 %"):
        parts.append(text(WIDTH - RIGHT + 14, row, words, "start", 'fill="#555"'))
        row += 18
    return page(WIDTH, HEIGHT, parts)


def main():
    if len(sys.argv) < 3 or not sys.argv[-1].endswith(".svg"):
        sys.exit(__doc__)
    points = []
    for name in sys.argv[1:-1]:
        points.append(point_of(json.loads(Path(name).read_text(encoding="utf-8")), name))
    for name, voxels, shares in points:
        print(f"{name}: {voxels:,} voxels, median {shares[0.5]:.3f} ms, 5 % {shares[0.05]:.3f}, "
              f"95 % {shares[0.95]:.3f}, 99 % {shares[0.99]:.3f}")  # fmt: skip
    Path(sys.argv[-1]).write_text(draw(points), encoding="utf-8")
    print(f"drawn to {sys.argv[-1]}")


if __name__ == "__main__":
    main()
