#!/usr/bin/env python3
"""Draws what tuning found: the time of each group of layers, untuned and tuned.

    pumice tune minkunet42 scan.bin --json > tuning.json
    tools/plot_tuning.py tuning.json tuning.svg

A bar is the median, its whisker the interval that holds the true median with the confidence in the record. Groups
whose plans stay untuned have one bar. Needs nothing but Python.
"""

import json
import sys
from pathlib import Path

from svg_chart import page, text

WIDTH, LEFT, RIGHT, TOP = 940, 390, 150, 64   # margins
BAR, GAP = 13, 14
UNTUNED, TUNED = "#8aa9cc", "#2f6db5"


def escaped(words):
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def bar(y, estimate, scale, colour):
    """A bar with the whisker of its interval."""
    end, low, high = (LEFT + estimate[key] * scale for key in ("median", "low", "high"))
    middle = y + BAR / 2
    return [
        f'<rect x="{LEFT}" y="{y:.1f}" width="{max(end - LEFT, 0.5):.1f}" height="{BAR}" fill="{colour}"/>',
        f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 3:.1f}v6M{high:.1f} {middle - 3:.1f}v6" '
        'stroke="#222" fill="none"/>',
    ]


def draw(record):
    groups = [group for group in record["groups"] if group["untuned_s"]]
    if not groups:
        sys.exit("nothing was measured to the end: tune with a larger --budget-s")
    slowest = max(max(g["untuned_s"]["high"], g["untuned_s"]["median"]) for g in groups)
    scale = (WIDTH - LEFT - RIGHT) / slowest
    parts = [
        text(16, 26, "Time of each group of layers on one map, ms", "start", 'font-size="16"'),
        text(16, 46, escaped(record["summary"].split(" (")[0].rstrip(".") + "."), "start", 'fill="#555"'),
    ]
    y = TOP
    for group in groups:
        parts.append(text(LEFT - 8, y + BAR, escaped(group["name"]), "end"))
        parts += bar(y, group["untuned_s"], scale, UNTUNED)
        words = f'{1e3 * group["untuned_s"]["median"]:.3g}'
        y += BAR
        if group["verdict"] == "accepted" and group["tuned_s"]:
            parts += bar(y, group["tuned_s"], scale, TUNED)
            words += f' → {1e3 * group["tuned_s"]["median"]:.3g}'
            y += BAR
        else:
            words += f' ({group["verdict"]})'
        longest = max(group[key]["high"] for key in ("untuned_s", "tuned_s") if group[key])
        parts.append(text(LEFT + longest * scale + 8, y - BAR / 2, words, "start"))
        y += GAP
    for place, (colour, words) in enumerate(((UNTUNED, "untuned"), (TUNED, "tuned"))):
        x = LEFT + 110 * place
        parts.append(f'<rect x="{x}" y="{y}" width="{BAR}" height="{BAR}" fill="{colour}"/>')
        parts.append(text(x + BAR + 6, y + 11, words, "start"))
    return page(WIDTH, y + 32, parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    record = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(draw(record), encoding="utf-8")
    print(f"drawn to {sys.argv[2]}")


if __name__ == "__main__":
    main()
