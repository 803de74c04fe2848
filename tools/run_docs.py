#!/usr/bin/env python3
"""Runs the code blocks of the documentation, as a reader would: those of a page in one fresh folder, on small scans.

    tools/run_docs.py [--pumice PROGRAM] [--build FOLDER] [PAGE ...]

Pages are README.md, docs/how_to/x.md and so on; all of them by default. Without --build it runs what the Python package and
the program suffice for, with this interpreter; with it what needs a build folder. tools/doc_blocks.py says what a line
beside a block means. The folder looks like a checkout: the tree is linked into it, and the files that pages name as the
reader's own (scan.bin, net.pth, …) are made where a block names them (tools/doc_files.py).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from doc_blocks import DocumentError, blocks_of, complaints
from doc_files import NAMES, Files

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600   # for one command, on a machine that has other work too
NO_DEVICE = re.compile(r"CUDA|GPU")
NO_TESTS = re.compile(r"Total Tests: 0$|No tests were found|Running 0 tests", re.MULTILINE)
# Decisions tell of their day, and what they show may not run any more.
PAGES = ("*.md", "docs/*.md", "docs/how_to/*.md", "benchmarks/**/*.md", "models/*.md", "licenses/*.md", ".github/**/*.md")


def pages(root=ROOT):
    """Names below `root`, in order."""
    return sorted({str(page.relative_to(root)) for pattern in PAGES for page in root.glob(pattern)})


@cache
def has_gpu(program):
    said = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True, check=True).stdout
    return bool(json.loads(said)["cuda_devices"])


def without_gpu(code, said):
    """What is wrong with how a command ends where there is no GPU; None where it is right."""
    lines = [line for line in said.strip().splitlines() if line.strip()]
    if code == 0:
        return "is said to need a GPU and runs without one"
    if "Traceback" in said or not lines or not NO_DEVICE.search(lines[-1]):
        return "does not end with a sentence that says that there is no CUDA device:\n" + "\n".join(lines[-8:])
    return None


def finds_no_test(command, said):
    """Whether tests were asked for by a name that none has: ctest and GoogleTest succeed then."""
    if "--gtest_list_tests" in command:
        return not re.search(r"^  \w", said, re.MULTILINE)
    return bool(NO_TESTS.search(said))


class Runner:
    """Of one page: `program` is the pumice, `build` the build folder or None."""

    def __init__(self, page, files, program, build):
        self.page, self.files, self.program, self.build = page, files, program, build
        self.blocks = blocks_of(ROOT / page)
        self.errors = []

    def error(self, line, message):
        self.errors.append(f"{self.page}:{line}: {message}")

    def lay_out(self, folder):
        """What a checkout has, what was built or installed, and the environment that finds it."""
        for entry in ROOT.iterdir():
            if entry.name not in ("build", "out", "run", ".git"):
                (folder / entry.name).symlink_to(entry)
        here = folder / "build/release"
        here.mkdir(parents=True)
        if self.build:
            (here / "CTestTestfile.cmake").write_text(f'subdirs("{self.build}")\n', encoding="utf-8")
            for name in ("bin", "share"):
                (here / name).symlink_to(self.build / name)
        else:
            (here / "bin").mkdir()
            (here / "bin/pumice").symlink_to(self.program)
        # As in an activated environment; starting Python for what the program does alone would take most of the time.
        path = folder / "build/path"
        path.mkdir()
        by_python = f'case "$1" in convert|doctor|-h|--help|"") exec {sys.executable} -m pumice "$@" ;; esac\n'
        scripts = {
            "pumice": ("" if self.build else by_python) + f'exec {self.program} "$@"\n',
            "python": f'exec {sys.executable} "$@"\n',
        }
        for name, text in scripts.items():
            (path / name).write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
            (path / name).chmod(0o755)
        search = [str(path), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        packages = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join(search),
            "PYTHONPATH": os.pathsep.join(packages),
            "PUMICE_CACHE": str(self.files.folder / "cache"),
            "PUMICE_PLANS": "",  # those that the page stores, in that folder
        }

    def run(self, command, folder, line):
        """Exit code and everything said."""
        try:
            done = subprocess.run(
                command, cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.error(line, f"runs longer than {SECONDS} s: {command[-1]}")
            return 0, ""
        return done.returncode, done.stdout + done.stderr

    def run_commands(self, block, folder):
        for command in block.commands():
            code, said = self.run(["bash", "-o", "pipefail", "-c", command], folder, block.line)
            if block.says.get("needs") == "gpu" and not has_gpu(self.program):
                wrong = without_gpu(code, said)
            elif code != 0:
                wrong = f"ends with {code}:\n{said[-3000:]}"
            else:
                wrong = "finds no test" if finds_no_test(command, said) else None
            if wrong:
                self.error(block.line, f"{command}\n{wrong}")

    def run_script(self, blocks, before, after, folder):
        """All of them as one file, whose lines have the numbers of the page."""
        lines = [before]
        for block in blocks:
            lines += [""] * (block.line - 1 - len(lines)) + block.replaced().splitlines()
        name = Path(self.page).stem + "_page.py"
        (folder / name).write_text("\n".join(lines) + "\n" + after, encoding="utf-8")
        code, said = self.run([sys.executable, name], folder, blocks[0].line)
        if code != 0:
            self.error(blocks[0].line, f"the blocks of Python as one script end with {code}:\n{said[-3000:]}")

    def check(self, before, after):
        for block in self.blocks:
            for wrong in complaints(block, ROOT):
                self.error(block.line, wrong)
        chosen = [block for block in self.blocks if block.runs(self.build is not None)]
        if self.errors or not chosen:
            return
        scripts = [block for block in chosen if block.language == "python"]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.lay_out(folder)
            for given in sorted(set(NAMES.findall("\n".join(block.replaced() for block in chosen)))):
                self.files.put(given, folder)
            for block in chosen:
                if block.language == "bash":
                    self.run_commands(block, folder)
                elif block is scripts[-1]:
                    self.run_script(scripts, before, after, folder)
                if self.errors:   # what comes after may need it
                    return


def check_page(page, files, program, build=None, before="", after=""):
    """Everything that is wrong with a page. `before` is a line of Python that its script begins with, `after` its end."""
    try:
        runner = Runner(page, files, program, build)
        runner.check(before, after)
        return runner.errors
    except DocumentError as error:
        return [f"{page}: {error}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", default=pages())
    parser.add_argument("--pumice", type=Path, default=ROOT / "build/release/bin/pumice", help="the program")
    parser.add_argument("--build", type=Path, help="the build folder: runs what needs it, and nothing else")
    options = parser.parse_args()
    program, build = options.pumice.resolve(), options.build and options.build.resolve()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), program, ROOT)
        for page in options.pages:
            wrong += check_page(page, files, program, build)
    for error in wrong:
        print(error, file=sys.stderr)
    print(f"{len(options.pages)} pages, {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
