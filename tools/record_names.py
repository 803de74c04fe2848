#!/usr/bin/env python3
"""Writes which public names the peers have, with which arguments, and which of them the docs have to list as absent.

    tools/record_names.py --from FOLDER    names and arguments of the checkouts in FOLDER, into names and signatures
                                           in tests/python/conformance
    tools/record_names.py --absent         the lists in docs/how_to/come_from_*.md; needs the package

Look at the difference before you commit it: a name that is absent should be absent for a reason.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python/conformance"))
import names  # noqa: E402
import peer_tests  # noqa: E402
import signatures  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="foreign", type=Path)
    parser.add_argument("--absent", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a process of its own for each package
    options = parser.parse_args()
    if options.one:
        import pumice.compat

        pumice.compat.install(options.one)
        print(json.dumps(names.absent(names.read(options.one))))
        return
    peers, _ = peer_tests.peers_of()
    for package, peer in peers.items():
        if peer.library:  # whose names are those of another row
            continue
        if options.foreign:
            checkout = peer_tests.folder_of(options.foreign, peer.checkout, peer.commit)
            names.write(package, names.recorded(checkout, package))
            signatures.write(package, signatures.recorded(checkout, package))
        if options.absent:
            command = [sys.executable, __file__, "--one", package]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            page = ROOT / peer.page
            missing = json.loads(done.stdout.splitlines()[-1])
            page.write_text(names.with_list(page.read_text(encoding="utf-8"), missing), encoding="utf-8")
            print(f"{package}: {sum(map(len, missing.values()))} names and "
                  f"{sum(not rest for rest in missing.values())} modules are absent")


main()
