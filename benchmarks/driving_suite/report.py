"""The page of a run: one HTML file with tables and charts, nothing loaded from anywhere."""

from __future__ import annotations

import html
from collections.abc import Sequence

from .ablation import effects
from .cases import INFERENCE, TRAINING
from .records import COMPILED, OURS, Record, Row, geometric_mean, ratios

STYLE = """
body { font: 15px/1.5 sans-serif; color: #222; background: #fff; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
th, td { padding: .25em .7em; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child, .text { text-align: left; }
caption { text-align: left; font-weight: bold; }
figure { margin: 1.5em 0; } svg { max-width: 100%; height: auto; }
.note { color: #555; font-size: 13px; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; } th, td { border-color: #444; } .note { color: #aaa; } figure { background: #fff; } }
"""
COLOURS = (
    "#2f6db5", "#7fb2e5", "#1b3f6b", "#5c8fc7", "#c2571a", "#e3a072", "#3b8a3e", "#93c795", "#7b4ea3", "#bda2d4", "#888888", "#c0c0c0",
)  # fmt: skip
WIDTH, LEFT, BAR, GAP = 860, 230, 15, 26
ABOUT_WORK = (
    "<p class='note'>“GFLOP”, “gathered” and “moved” are what no implementation leaves out: products of the pairs there are, a row "
    "from the second-level cache for each pair, each tensor of a layer once from memory; in training both gradients, norms and the "
    "optimizer. “Least”: each of these products and passes takes as long as its nearest limit has it (on an H200 0.9 PFLOP/s, 7.3 "
    "and 4.2 TB/s), one after the other. Sets, maps and losses are not in it. “Share”: of the row's time.</p>"
)


def bars(title: str, groups: dict[str, list[tuple[str, float]]], unit: str) -> str:
    """Horizontal bars, a group for each workload, from 0 on."""
    if not groups:
        return ""
    names = list(dict.fromkeys(name for bars in groups.values() for name, _ in bars))
    most = max(value for bars in groups.values() for _, value in bars)
    parts, y = [], 40
    for group, values in groups.items():
        parts.append(f'<text x="{LEFT - 10}" y="{y + BAR - 3}" text-anchor="end" font-weight="bold">{html.escape(group)}</text>')
        for name, value in values:
            length = (WIDTH - LEFT - 90) * value / most
            colour = COLOURS[names.index(name) % len(COLOURS)]
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{colour}"><title>{html.escape(name)}</title></rect>')
            parts.append(f'<text x="{LEFT + length + 6:.1f}" y="{y + BAR - 4}" font-size="11">{value:.2f} {unit}</text>')
            y += BAR
        y += GAP - BAR
    for number, name in enumerate(names):
        x = LEFT + 210 * (number % 3)
        if number % 3 == 0:
            y += 20
        parts.append(f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(f'<text x="{x + 17}" y="{y}" font-size="12">{html.escape(name)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 20}" font-family="sans-serif" font-size="13" fill="#222">'
    caption = f'<text x="10" y="22" font-size="16">{html.escape(title)}</text>'
    return f"<figure>{head}{caption}{''.join(parts)}</svg></figure>"


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{line(heads, 'th')}{body}</table>"


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def cells(row: Row, with_work: bool = False) -> list[str]:
    """Of a table of one task, without workload and voxels."""
    work = [number(row.gflop, 1), number(row.gathered_mib, 0), number(row.moved_mib, 0), number(row.least_ms, 3),
            "" if row.share is None else f"{100 * row.share:.0f} %"] if with_work else []  # fmt: skip
    norms = "" if row.norms == "folded" else f", norms {row.norms}"
    return [
        f"{row.library}, {row.way}{norms}", number(row.ms), f"{row.low_ms:.2f} – {row.high_ms:.2f} ({row.rounds})",
        number(row.row_ms),
        number(row.host_ms), number(row.busy_ms), number(row.peak_mib, 0), number(row.energy_mj, 0), *work,
    ]  # fmt: skip


WORK_HEADS = ("GFLOP", "gathered MiB", "moved MiB", "least ms", "share")
HEADS = ("library, way", "ms", "rounds", "in a row", "host", "device busy", "peak MiB", "mJ")


def page(record: Record) -> str:
    """The whole file."""
    header = record.header
    parts = ["<h1>Seven driving benchmarks</h1>"]
    versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    driver = f", driver {header['driver']}, CUDA {header['cuda']}" if header["driver"] else ""
    parts.append(f"<p>{html.escape(header['device'])}{html.escape(driver)}; {html.escape(versions)}; commit "
                 f"{html.escape(header['commit'])}; {html.escape(header['date'])}.</p>")  # fmt: skip
    if header.get("earlier_runs"):
        parts.append(f"<p>Some rows are of runs of {html.escape(', '.join(run['date'] for run in header['earlier_runs']))}.</p>")
    if header["settings"].get("size") == "tiny":
        parts.append("<p><b>A run on tiny inputs, for tests: no figures of the benchmarks.</b></p>")
    parts.append(
        "<p class='note'>Milliseconds a pass, kernel maps made in it unless a row says that they are kept. “ms”: the median "
        "over rounds of passes that each begin on an idle device and are waited for; “rounds”: the fastest, the slowest "
        "and how many; “host”: until all is enqueued; “device busy”: kernels and copies alone. Rows of C++ are of a process of its own, of one "
        "scan, beside no other library; “device busy” is there the time between two events. On a CPU “half” and “autocast” compute "
        "in bfloat16.</p>"
    )
    for task, title in ((INFERENCE, "Inference, batch of 1"), (TRAINING, "Training step, batch of 2")):
        parts += _ratios(record, task)
        groups: dict[str, list[tuple[str, float]]] = {}
        for row in record.rows:
            if row.task == task and row.norms == "folded" and row.way in ("autocast", "half"):
                groups.setdefault(row.workload, []).append((f"{row.library}, {row.way}", row.ms))
        parts.append(bars(title, groups, "ms"))
    has_work = any(row.gflop is not None for row in record.rows)
    if has_work:
        parts.append(ABOUT_WORK)
    for task in (INFERENCE, TRAINING):
        found = effects(record.rows, task)
        if found:
            parts.append(bars(f"{task}: time with one thing changed over time without that change", found, "times"))
    for workload in dict.fromkeys(row.workload for row in record.rows):
        parts.append(f"<h2>{html.escape(workload)}</h2>")
        of_it = [row for row in record.rows if row.workload == workload]
        for task in dict.fromkeys(row.task for row in of_it):
            rows = [row for row in of_it if row.task == task]
            caption = f"{task}: {rows[0].voxels:,} voxels, {rows[0].input}"
            heads = (*HEADS, *WORK_HEADS) if has_work else HEADS
            parts.append(table(caption, heads, [cells(row, has_work) for row in rows]))
    if record.agreement:
        rows = [[one["workload"], one["library"], f"{one['difference']:.1e} in {one['types']}"] for one in record.agreement]
        parts.append(table("Largest difference of outputs", ("workload", "library", "of the largest value"), rows))
    if record.left_out:
        rows = [[one["workload"], one["library"], f"{one['task']} {one['way']}".strip(), one["reason"]] for one in record.left_out]
        parts.append(table("Not measured", ("workload", "library", "what", "why"), rows))
    parts.append(f"<p class='note'>Energy: {html.escape(header['energy'])}.</p>")
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>Seven driving benchmarks</title>"
        f"<style>{STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _ratios(record: Record, task: str) -> list[str]:
    groups: dict[str, list[tuple[str, float]]] = {}
    means = []
    for library, how in ((OURS, "layer by layer"), (COMPILED, "compiled")):
        found = ratios(record.rows, task, library)
        if found:
            means.append(f"{how} {geometric_mean(found.values()):.2f}")
        for name, ratio in found.items():
            groups.setdefault(name, []).append((f"fastest peer / Pumice, {how}", ratio))
    return [bars(f"{task}: the fastest peer's time over Pumice's; geometric mean {', '.join(means)}", groups, "times")]
