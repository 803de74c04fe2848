#!/usr/bin/env python3
"""Draws how time grows with the number of voxels, and says by which power.

    build/release/bin/pumice bench scaling --json > scaling.json
    tools/plot_scaling.py scaling.json docs/pictures/scaling.svg

Both axes are logarithmic; a straight line is a power of the number of voxels, and its exponent is the
slope of the least-squares line through the logarithms. Needs nothing but Python.
"""

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT = 760, 470
LEFT, RIGHT, TOP, BOTTOM = 80, 250, 48, 64   # margins
# Told apart by shape too.
STYLES = [("#2f6db5", "circle"), ("#c2571a", "square"), ("#3b8a3e", "diamond"), ("#7b4ea3", "triangle")]
TITLE = "Time of one step, not of a network, against voxels; {threads} threads"
TITLES = {
    "voxelize": "voxelisation",
    "map": "kernel map 3³",
    "forward 32 > 32": "one layer 3³, 32 → 32",
}


def series_of(record):
    """{name: [(voxels, ms), …]}, ascending."""
    series = {}
    for row in record["measurements"]:
        series.setdefault(row["name"], []).append((row["rows"], row["median_ms"]))
    return {name: sorted(points) for name, points in series.items()}


def power_law(points):
    """(exponent, factor) of the least-squares line through the logarithms."""
    x = [math.log(rows) for rows, _ in points]
    y = [math.log(ms) for _, ms in points]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)
    return slope, math.exp(mean_y - slope * mean_x)


def human(value):
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


class Axis:
    """Logarithmic, from one pixel to another."""

    def __init__(self, values, begin, end):
        self.low, self.high = math.log10(min(values)), math.log10(max(values))
        margin = 0.04 * (self.high - self.low)
        self.low, self.high = self.low - margin, self.high + margin
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        for decade in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in (1, 2, 5):
                value = step * 10.0**decade
                if self.low <= math.log10(value) <= self.high:
                    yield value


def marker(shape, x, y, colour):
    r = 4.5
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"/>'
    corners = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
    }[shape]
    points = " ".join(f"{x + r * a:.1f},{y + r * b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'


def draw(record):
    series = series_of(record)
    everything = [point for points in series.values() for point in points]
    x = Axis([rows for rows, _ in everything], LEFT, WIDTH - RIGHT)
    laws = [power_law(points) for points in series.values()]
    fitted = [factor * rows**exponent for exponent, factor in laws for rows, _ in everything]
    y = Axis([ms for _, ms in everything] + fitted, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 26, TITLE.format(**record), "start", 'font-size="16"'),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "voxels"),
        text(20, (TOP + HEIGHT - BOTTOM) / 2, "ms",
             more=f'transform="rotate(-90 20 {(TOP + HEIGHT - BOTTOM) / 2:.0f})"'),
    ]  # fmt: skip
    for value in x.ticks():
        parts.append(f'<path d="M{x(value):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(text(x(value), HEIGHT - BOTTOM + 20, human(value)))
    for value in y.ticks():
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y(value) + 4, human(value), "end"))
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
    return "\n".join(parts + ["</svg>", ""])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    record = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for name, points in series_of(record).items():
        if len(points) < 2:
            sys.exit(f"{sys.argv[1]}: {name} has one size only; a line needs two")
        exponent, _ = power_law(points)
        print(f"{name}: {points[0][0]:,} to {points[-1][0]:,} voxels, "
              f"{points[0][1]:.1f} to {points[-1][1]:.1f} ms, exponent {exponent:.3f}")  # fmt: skip
    Path(sys.argv[2]).write_text(draw(record), encoding="utf-8")
    print(f"drawn to {sys.argv[2]}")


if __name__ == "__main__":
    main()
