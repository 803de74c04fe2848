#!/usr/bin/env python3
"""Runs the peers' own tests and third-party networks on Pumice, and compares with the expected tables.

    tools/conformance.py [--peer NAME] [--networks] [--only WORD] [--record]

The folder PUMICE_FOREIGN holds the checkouts, at the commits of tests/python/conformance/peers.json and networks.json;
what is not there is left out with a sentence. Without --peer and --networks all of it runs. Exit status 1 if anything
changed, to the better too, or fails unexplained. --record writes the tables and the page docs/what_has_been_run.md, and
prints the difference.
"""

import argparse
import concurrent.futures
import datetime
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests/python/conformance"
sys.path.insert(0, str(HERE))
import expectations  # noqa: E402
import peer_tests  # noqa: E402

DEVICES = ("cpu", "cuda")
PAGE = ROOT / "docs/what_has_been_run.md"
TABLE = re.compile(r"(<!-- conformance: ([\w ]+) -->\n).*?(<!-- end of conformance -->)", re.DOTALL)


def on_device():
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def run_network(folder, name):
    """{network, precision: outcome} of one, in a process of its own."""
    before = os.environ.get("PYTHONPATH")
    where = [str(peer_tests.folder_of_the_package()), *([before] if before else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(where)}
    command = [sys.executable, str(HERE / "run_network.py"), str(folder), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
        ended = (done.stderr.splitlines() or ["ended without a word"])[-1]
        lines = [line for line in done.stdout.splitlines() if line == "pass" or re.match(r"\w+: ", line)][-2:]
    except subprocess.TimeoutExpired:
        ended, lines = "did not end in 300 s", []
    found = {f"{name}, {precision}": line for precision, line in zip(("f32", "half"), [*lines, ended, ended])}
    print("\n".join(f"{run}: {outcome}" for run, outcome in found.items()), flush=True)
    return found


def run_networks(foreign, only, jobs):
    """({network, precision: outcome}, sentences about what was left out), so many at a time."""
    data = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))
    runs, left_out = [], set()
    for name, row in data["networks"].items():
        if only and only not in name:
            continue
        try:
            commit = data["repositories"][row["checkout"]][1]
            runs.append((peer_tests.folder_of(foreign, row["checkout"], commit), name))
        except peer_tests.NotThere as error:
            left_out.add(str(error))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = [outcome for one in pool.map(lambda run: run_network(*run), runs) for outcome in one.items()]
    return dict(found), sorted(left_out)


def expected_in(device, name):
    """The file of the table of a peer's tests, or of networks, on a device."""
    return HERE / "expected" / device / f"{name}.json"


def rows_of(kind):
    """The lines of a table of the page, from the expected tables."""
    if kind == "tests":
        peers, _ = peer_tests.peers_of()
        lines = ["| tests of | commit | tests | pass | skipped | documented | internals | stale | unexplained | run on | date |", "|---|---|---|---|---|---|---|---|---|---|---|"]
        for name, device in itertools.product(peers, DEVICES):
            table = expectations.read(expected_in(device, name))
            counts = [sum(row["result"] == kind for row in table.values()) for kind in ("pass", "skip", *expectations.REASONS)]
            if table:
                shown = [name, peers[name].commit[:7], len(table), *counts, device, expectations.latest(table.values())]
                lines.append(f"| {' | '.join(map(str, shown))} |")
        return lines
    data = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))
    tables = {device: expectations.read(expected_in(device, "networks")) for device in DEVICES}
    lines = ["| network | library | commit | steps | CPU: f32 | half | date | GPU: f32 | half | date |", "|---|---|---|---|---|---|---|---|---|---|"]
    for name, row in data["networks"].items():
        shown = [name, row["library"], data["repositories"][row["checkout"]][1][:7], str(row.get("training", {}).get("steps", ""))]
        for table in tables.values():
            runs = [table.get(f"{name}, {precision}", {}) for precision in ("f32", "half")]
            shown += [*(run.get("result", "not run") for run in runs), expectations.latest(runs)]
        lines.append(f"| {' | '.join(shown)} |")
    return lines


def write_page(kinds):
    def anew(found):
        if found[2] not in kinds:
            return found[0]
        return found[1] + "\n" + "\n".join(rows_of(found[2])) + "\n\n" + found[3]

    PAGE.write_text(TABLE.sub(anew, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def judge(name, found, page, record, partly, device):
    """Complaints, after the table was written where that is asked for."""
    file = expected_in(device, name)
    before = expectations.read(file)
    if partly:
        before_here = {test: row for test, row in before.items() if test in found}
    else:
        before_here = before
    if record:
        known = {test: row for test, row in expectations.read(expected_in("cpu", name)).items() if test in found}
        after = expectations.recorded({**known, **before_here}, found, datetime.date.today().isoformat())
        print("\n".join(expectations.changes(before_here, after)))
        file.parent.mkdir(parents=True, exist_ok=True)
        before_here = after
        expectations.write(file, {**before, **after} if partly else after)
    return expectations.complaints(before_here, found, page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", help="only this library's tests")
    parser.add_argument("--networks", action="store_true", help="only the networks")
    parser.add_argument("--only", help="files and networks whose names contain this")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one file of tests")
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    foreign = Path(os.environ["PUMICE_FOREIGN"]).resolve() if os.environ.get("PUMICE_FOREIGN") else None
    device, wrong, ran = on_device(), [], set()
    peers, rules = peer_tests.peers_of()
    for name in options.peer or ([] if options.networks else peers):
        peer = peers[name]
        try:
            found = peer_tests.run_peer(peer, foreign, peer_tests.cpu_rules(rules, device), options.only, options.limit)
        except peer_tests.NotThere as error:
            print(f"{name}: {error}")
            continue
        ran.add("tests")
        print(f"{name}: {peer_tests.summary(found)} pass")
        page = (ROOT / peer.page).read_text(encoding="utf-8")
        wrong += judge(name, found, page, options.record, bool(options.only), device)
    if options.networks or not options.peer:
        found, left_out = run_networks(foreign, options.only, options.jobs)
        print("\n".join(left_out))
        if found:
            ran.add("networks")
            pages = "".join((ROOT / peer.page).read_text(encoding="utf-8") for peer in peers.values())
            wrong += judge("networks", found, pages, options.record, bool(options.only or left_out), device)
    if options.record:
        write_page(ran)
    print("\n".join(wrong))
    print(f"{len(wrong)} complaints")
    return 1 if wrong else 0


sys.exit(main())
