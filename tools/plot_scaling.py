#!/usr/bin/env python3
"""Draws how time grows with the number of voxels, and says by which power.

    build/release/bin/pumice bench scaling --json > scaling.json
    tools/plot_scaling.py scaling.json docs/pictures/scaling.svg
    tools/plot_scaling.py FOLDER/scaling.json memory.svg peak_mib      # of benchmarks/python/scaling.py: memory

Both axes are logarithmic; a straight line is a power of the number of voxels, and its exponent is the
slope of the least-squares line through the logarithms. Needs nothing but Python.
"""

import json
import math
import sys
from pathlib import Path

from svg_chart import LogAxis, frame, human, marker, page, text

WIDTH, HEIGHT = 760, 470
LEFT, RIGHT, TOP, BOTTOM = 80, 250, 48, 64   # margins
# Told apart by shape too.
STYLES = [
    ("#2f6db5", "circle"), ("#c2571a", "square"), ("#3b8a3e", "diamond"), ("#7b4ea3", "triangle"), ("#555555", "down"), ("#b5932f", "plus"),
]
TITLE = "Time of one step, not of a network, against voxels; {threads} threads"
UNITS = {"median_ms": "ms", "peak_mib": "MiB"}
TITLES = {
    "voxelize": "voxelisation",
    "map": "kernel map 3³",
    "forward 32 > 32": "one layer 3³, 32 → 32",
}


def series_of(record, what="median_ms"):
    """{name: [(voxels, value), …]}, ascending; rows without a value are left out."""
    series = {}
    for row in record["measurements"]:
        if row[what] is not None:
            series.setdefault(row["name"], []).append((row["rows"], row[what]))
    return {name: sorted(points) for name, points in series.items()}


def power_law(points):
    """(exponent, factor) of the least-squares line through the logarithms."""
    x = [math.log(rows) for rows, _ in points]
    y = [math.log(ms) for _, ms in points]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)
    return slope, math.exp(mean_y - slope * mean_x)


def draw(record, what="median_ms"):
    series = series_of(record, what)
    if len(series) > len(STYLES):
        raise ValueError(f"{len(series)} series: there are marks for {len(STYLES)}")
    title = record.get("title") or TITLE.format(**record)
    if what != "median_ms":
        title = title.replace("Time", "Memory", 1)
    everything = [point for points in series.values() for point in points]
    x = LogAxis([rows for rows, _ in everything], LEFT, WIDTH - RIGHT)
    laws = [power_law(points) for points in series.values()]
    fitted = [factor * rows**exponent for exponent, factor in laws for rows, _ in everything]
    y = LogAxis([ms for _, ms in everything] + fitted, HEIGHT - BOTTOM, TOP)
    parts = frame(
        (LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM), title, ("voxels", UNITS[what]),
        [(x(value), human(value)) for value in x.ticks()], [(y(value), human(value)) for value in y.ticks()],
    )  # fmt: skip
    for index, ((name, points), (colour, shape)) in enumerate(zip(series.items(), STYLES)):
        exponent, factor = laws[index]
        ends = [points[0][0], points[-1][0]]
        line = "L".join(f"{x(v):.1f} {y(factor * v**exponent):.1f}" for v in ends)
        parts.append(f'<path d="M{line}" stroke="{colour}" stroke-width="1.5" stroke-dasharray="5 4"/>')
        parts += [marker(shape, x(rows), y(ms), colour) for rows, ms in points]
        row = TOP + 20 + 46 * index
        parts.append(marker(shape, WIDTH - RIGHT + 22, row - 4, colour))
        parts.append(text(WIDTH - RIGHT + 36, row, TITLES.get(name, name), "start"))
        parts.append(text(WIDTH - RIGHT + 36, row + 18, f"grows as N to the {exponent:.2f}", "start", 'fill="#555"'))
    return page(WIDTH, HEIGHT, parts)


def main():
    what = sys.argv[3] if len(sys.argv) == 4 else "median_ms"
    if len(sys.argv) not in (3, 4) or what not in UNITS:
        sys.exit(__doc__)
    record = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    series = series_of(record, what)
    if not series:
        sys.exit(f"{sys.argv[1]} has no {what}: nothing to draw")
    for name, points in series.items():
        if len(points) < 2:
            sys.exit(f"{sys.argv[1]}: {name} has one size only; a line needs two")
        exponent, _ = power_law(points)
        print(f"{name}: {points[0][0]:,} to {points[-1][0]:,} voxels, "
              f"{points[0][1]:.1f} to {points[-1][1]:.1f} {UNITS[what]}, exponent {exponent:.3f}")  # fmt: skip
    Path(sys.argv[2]).write_text(draw(record, what), encoding="utf-8")
    print(f"drawn to {sys.argv[2]}")


if __name__ == "__main__":
    main()
