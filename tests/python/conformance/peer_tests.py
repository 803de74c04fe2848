"""A peer's own test files, run from its checkout with Pumice under its name: what each test gives."""

from __future__ import annotations

import ast
import fnmatch
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def folder_of_the_package() -> pathlib.Path:
    """Where this process finds pumice: the tests of a peer run with the same one, installed or not."""
    found = importlib.util.find_spec("pumice")
    if found is None or found.origin is None:
        raise NotThere("pumice is neither installed nor on PYTHONPATH")
    return pathlib.Path(found.origin).parents[1]


IN_A_PROCESS = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
import pumice.compat
package, module, function = sys.argv[2:]
pumice.compat.install(package)
module = importlib.import_module(module)
print(json.dumps(getattr(module, function)(module.read(package))))
"""


def found_of(package: str, module: str, function: str) -> Any:
    """What a function of a module beside this one says of that module's record of a package, in a process in which
    Pumice has the package's name."""
    command = [sys.executable, "-c", IN_A_PROCESS, str(HERE), package, module, function]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


class NotThere(Exception):
    """A checkout is absent, or has another commit than the pinned one."""


@dataclass
class Peer:
    """A row of peers.json."""

    name: str
    checkout: str
    commit: str
    page: str
    tests: str
    repository: str = ""
    without: list[str] = field(default_factory=list)
    copied: dict[str, str] = field(default_factory=dict)
    supplied: list[str] = field(default_factory=list)
    shorter: list[dict[str, str]] = field(default_factory=list)  # substitutions everywhere, by file
    on_a_cpu: list[dict[str, str]] = field(default_factory=list)  # before those of all peers
    kept: list[str] = field(default_factory=list)  # files that no rule for a CPU touches
    written: dict[str, str] = field(default_factory=dict)  # files that the copy has besides
    environment: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)  # folders of this project that modules are found in
    plugins: list[str] = field(default_factory=list)  # of pytest
    conftest: bool = False
    library: str = ""  # whose name Pumice has; by default the peer's own
    start: str = "."


def peers_of(file: pathlib.Path = HERE / "peers.json") -> tuple[dict[str, Peer], list[dict[str, str]]]:
    """The peers, and the substitutions that a CPU needs."""
    rows = json.loads(file.read_text())
    peers = {}
    for name, row in rows["peers"].items():
        start = row.pop("from")
        peers[name] = Peer(name=name, start=start, **row)
    return peers, rows["on_a_cpu"]


def folder_of(foreign: pathlib.Path | None, name: str, commit: str) -> pathlib.Path:
    """The checkout, after a look at its commit: .git's, or that of the file NAME.commit beside it."""
    if foreign is None or not (foreign / name).is_dir():
        raise NotThere(f"PUMICE_FOREIGN names no folder with a checkout of {name}")
    folder, note = foreign / name, foreign / f"{name}.commit"
    if note.exists():
        found = note.read_text().split()[0]
    else:
        command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = done.stdout.strip() or "no commit"
    if found != commit:
        raise NotThere(f"the checkout of {name} has {found}; check out {commit}")
    return folder


def tests_in(file: pathlib.Path) -> list[str]:
    """`test_a` and `Class::test_b`, read and not run: a file that fails to import has tests too."""
    names = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            names.append(node.name)
        elif isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).split(".")[-1] for base in node.bases}
            if "TestCase" in bases or (node.name.startswith("Test") and not bases):
                names += [f"{node.name}::{inner.name}" for inner in node.body
                          if isinstance(inner, ast.FunctionDef) and inner.name.startswith("test")]  # fmt: skip
    return names


def substituted(text: str, rules: list[dict[str, str]]) -> str:
    for rule in rules:
        text = re.sub(rule["pattern"], rule["by"], text, flags=re.MULTILINE)
    return text


def copy_of(peer: Peer, checkout: pathlib.Path, to: pathlib.Path, rules: list[dict[str, str]]) -> None:
    """The peer's tests without its package, so that the name of the package is Pumice's."""
    for source, target in peer.copied.items():
        (to / target).parent.mkdir(parents=True, exist_ok=True)
        if (checkout / source).is_dir():
            shutil.copytree(checkout / source, to / target)
        else:
            shutil.copy(checkout / source, to / target)
    for name, text in peer.written.items():
        (to / name).write_text(text, encoding="utf-8")
    for name in peer.supplied:
        source, target = HERE / "supplied" / name, to / peer.start / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    for file in to.rglob("*.py"):
        relative = str(file.relative_to(to))
        mine = [rule for rule in peer.shorter if fnmatch.fnmatch(relative, rule["file"])]
        for_cpu = [*peer.on_a_cpu, *rules] if rules and relative not in peer.kept else []
        text = file.read_text(encoding="utf-8")
        changed = substituted(text, for_cpu + mine)
        if changed != text:
            file.write_text(changed, encoding="utf-8")


def run_file(peer: Peer, copy: pathlib.Path, file: pathlib.Path, limit: float) -> dict[str, str]:
    """{test: "pass", "skip" or the error's last line} of one file, in a process of its own."""
    names = tests_in(file)
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        folders = [str(ROOT / folder) for folder in peer.path]
        where = [str(HERE), *folders, str(copy), str(copy / peer.start), str(folder_of_the_package())]
        before = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(where + ([before] if before else [])),
            "PUMICE_CONFORMANCE_REPORT": report.name,
            "PUMICE_CONFORMANCE_PEER": peer.library or peer.name,
            **peer.environment,
        }
        plugins = [argument for plugin in peer.plugins for argument in ("-p", plugin)]
        others = [] if peer.conftest else ["--noconftest"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "outcomes", *plugins, "-p", "no:cacheprovider",
                   "-o", "python_files=*.py", "-o", "addopts=", *others, "--rootdir", str(copy), str(file)]  # fmt: skip
        try:
            done = subprocess.run(command, cwd=copy / peer.start, env=environment, capture_output=True,
                                  text=True, errors="replace", timeout=limit, check=False)  # fmt: skip
            said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
            ended = f"did not run: {said[-1]}"
        except subprocess.TimeoutExpired:
            ended = f"did not end in {limit:.0f} s"
        written = pathlib.Path(report.name).read_text()
    found: dict[str, str] = {}
    broken = ""
    for line in written.splitlines():
        where_, outcome = json.loads(line)
        if "::" in where_:
            found[where_.split("::", 1)[1]] = outcome
        else:
            broken = f"does not import: {outcome}"
    ran = {name.split("[", 1)[0] for name in found}  # of a test with parameters all of them
    return {name: broken or ended for name in names if name not in ran} | found


def run_peer(
    peer: Peer,
    foreign: pathlib.Path | None,
    rules: list[dict[str, str]],
    only: str | None = None,
    limit: float = 900,
) -> dict[str, str]:
    """{file::test: outcome}; `rules` are what a CPU needs, and empty on a GPU."""
    checkout = folder_of(foreign, peer.checkout, peer.commit)
    outcomes: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        copy_of(peer, checkout, copy, rules)
        for file in sorted(copy.glob(peer.tests)):
            if file.name in peer.without or (only and only not in file.name):
                continue
            for test, outcome in run_file(peer, copy, file, limit).items():
                outcomes[f"{file.relative_to(copy)}::{test}"] = outcome
    return outcomes


def cpu_rules(rules: list[dict[str, str]], device: str) -> list[dict[str, str]]:
    return rules if device == "cpu" else []


def summary(outcomes: dict[str, Any]) -> str:
    return f"{sum(o == 'pass' for o in outcomes.values())} of {len(outcomes)}"
