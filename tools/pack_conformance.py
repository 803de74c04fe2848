#!/usr/bin/env python3
"""Packs what a machine with a GPU needs to run the conformance suite: the checkouts, the suite, its tables and the shims.

    tools/pack_conformance.py [ARCHIVE] [--largest MIB]     by default build/packed/pumice-conformance.tar.xz

There, with a wheel of this build installed (tools/pack_tests.sh packs one), in the unpacked folder:

    PUMICE_FOREIGN=foreign python tools/conformance.py --record

The folder PUMICE_FOREIGN holds the checkouts, at the commits of tests/python/conformance. What is not there, or larger than
so many MiB, is left out with a sentence.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests/python/conformance"
sys.path.insert(0, str(HERE))
import peer_tests  # noqa: E402

OURS = ["tools/conformance.py", "tests/python/conformance", "python/shims", "docs/what_has_been_run.md", "docs/how_to"]
PICTURES = {".gif", ".jpeg", ".jpg", ".mp4", ".pdf", ".png", ".svg"}  # no test reads one


def checkouts():
    """{folder: commit} of all peers and networks."""
    peers, _ = peer_tests.peers_of()
    networks = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))["repositories"]
    found = {peer.checkout: peer.commit for peer in peers.values()}
    return {**found, **{name: commit for name, (_, commit) in networks.items()}}


def files_of(folder):
    """Paths of a checkout, as its commit has them; of a folder without a repository of its own all of them."""
    if not (folder / ".git").exists():
        return sorted(path for path in folder.rglob("*") if path.is_file())
    listed = subprocess.run(["git", "-C", str(folder), "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [folder / name for name in listed.stdout.split("\0") if (folder / name).is_file()]


def pack_checkouts(archive, foreign, largest):
    for name, commit in checkouts().items():
        try:
            folder = peer_tests.folder_of(foreign, name, commit)
        except peer_tests.NotThere as error:
            print(f"left out: {error}")
            continue
        for path in files_of(folder):
            size = path.stat().st_size / 2**20
            if size > largest:
                print(f"left out: {name}/{path.relative_to(folder)} has {size:.1f} MiB; --largest {largest:g} is the limit")
            elif path.suffix.lower() not in PICTURES:
                archive.add(path, f"foreign/{name}/{path.relative_to(folder)}")
        note = f"{commit}\n".encode()
        member = tarfile.TarInfo(f"foreign/{name}.commit")
        member.size = len(note)
        archive.addfile(member, io.BytesIO(note))
        print(f"packed: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", nargs="?", type=Path, default=ROOT / "build/packed/pumice-conformance.tar.xz")
    parser.add_argument("--largest", type=float, default=16, metavar="MIB")
    options = parser.parse_args()
    foreign = Path(os.environ["PUMICE_FOREIGN"]).resolve() if os.environ.get("PUMICE_FOREIGN") else None
    options.archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(options.archive, "w:xz") as archive:
        for name in OURS:
            archive.add(ROOT / name, name, filter=lambda member: None if "__pycache__" in member.name else member)
        pack_checkouts(archive, foreign, options.largest)
    print(f"{options.archive}: {options.archive.stat().st_size / 2**20:.1f} MiB")


main()
