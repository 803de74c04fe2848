"""The expected tables beside what was found: every change is a complaint, to the better too."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable

# Why something does not pass: the docs say so (with the words), it tests the peer's internals, it fails with the
# peer itself or with today's PyTorch, or nobody has looked yet, which is a complaint of its own.
REASONS = ("documented", "internals", "stale", "unexplained")
_EXPLAINED = ("documented", "internals", "stale")
Table = dict[str, dict[str, str]]


def read(file: pathlib.Path) -> Table:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write(file: pathlib.Path, table: Table) -> None:
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table.items())]
    file.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def complaints(expected: Table, found: dict[str, str], page: str = "") -> list[str]:
    """One sentence for each test whose result is not the expected one, or not explained.

    `page` is the text of the docs: what is called documented has to stand there, word by word.
    """
    wrong = []
    for name, outcome in found.items():
        row = expected.get(name)
        if row is None:
            wrong.append(f"{name}: {outcome}; it is not in the table")
        elif row["result"] == "pass" and outcome != "pass":
            wrong.append(f"{name}: passed, now: {outcome}")
        elif row["result"] == "skip" and outcome != "skip":
            wrong.append(f"{name}: was skipped, now: {outcome}")
        elif row["result"] in REASONS and outcome in ("pass", "skip"):
            wrong.append(f"{name}: failed ({row['result']}), now: {outcome}; record it")
    for name, row in expected.items():
        if name not in found:
            wrong.append(f"{name}: in the table, and not run")
        if row["result"] == "unexplained":
            wrong.append(f"{name}: fails and nobody says why: {row['error']}")
        elif row["result"] in _EXPLAINED and not row.get("because"):
            wrong.append(f"{name}: {row['result']} needs a sentence under 'because'")
        elif row["result"] == "documented" and row["because"] not in page:
            wrong.append(f"{name}: the docs do not say: {row['because']}")
    return wrong


def recorded(before: Table, found: dict[str, str], date: str = "") -> Table:
    """The table of what was found, and when; explanations of what still fails stay."""
    table: Table = {}
    for name, outcome in found.items():
        old = before.get(name, {})
        if outcome in ("pass", "skip"):
            table[name] = {"result": outcome, "date": date}
        elif old.get("result") in _EXPLAINED:
            table[name] = {**old, "error": outcome, "date": date}
        else:
            table[name] = {"result": "unexplained", "error": outcome, "date": date}
    return table


def latest(rows: Iterable[dict[str, str]]) -> str:
    """Of the dates of some rows."""
    return max((row.get("date", "") for row in rows), default="")


def changes(before: Table, after: Table) -> list[str]:
    """Lines of a difference, for the eye."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            lines += [f"- {name}: {json.dumps(old)}"] if old else []
            lines += [f"+ {name}: {json.dumps(new)}"] if new else []
    return lines
