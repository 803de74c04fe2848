"""Code blocks of the documentation, and what a line beside each says of how it is run.

Every block is run as it stands, in a fresh folder with the others of its page (tools/run_docs.py), unless hidden lines
before it say otherwise:

    <!-- run with: --minutes 8 → --steps 2; a → b -->   on small input: texts to replace, each must be there
    <!-- run by: tests/x_test.py -->   the file named, a test, a script of ours or another page, runs it
    <!-- needs: gpu -->               without a GPU every line has to end with one sentence that says so
    <!-- needs: internet -->          or another word of NEEDS: only its commands and options are looked at
    <!-- needs package: open3d -->    left out where Python has no such package
    <!-- in: build -->                needs the build folder: ctest runs it, not the tests of the Python package
    <!-- output of: make demo -->     not code: what a command prints
    <!-- file: examples/x.cpp -->, <!-- part of: examples/x.cpp -->, <!-- help: pumice run -->
                                      as tools/check_docs.py checks; what the file holds is run by other tests

Fences of `python` are one script for a page; indented blocks and fences of `bash` are commands.
"""

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

NEEDS = {
    "gpu": "a CUDA device",
    "internet": "something is downloaded",
    "root": "something is installed for all users",
    "minutes": "too long for the tests, and nothing smaller would be the same",
    "clang": "a compiler that building does not need",
    "other software": "programs or packages that are not ours and that the tests do not install",
}
ELSEWHERE = {"run by", "output of", "file", "part of", "help"}   # with one of these it is not run here
KEYS = {"run with", "needs", "needs package", "in"} | ELSEWHERE
LINE = re.compile(r"^<!-- ([a-z ]+): (.*?) -->$")
# What stands for a file of the reader, everywhere.
PLACEHOLDERS = [(re.compile(r"\bSCAN\b(?!=)"), "scan.bin"), (re.compile(r"\bSWEEPS\b"), "scan.bin")]


class DocumentError(Exception):
    """Something in a page is not as it has to be."""


@dataclass
class Block:
    line: int   # of its first line of code, from 1
    language: str   # "python", "bash", or another of a fence
    text: str
    says: dict[str, str] = field(default_factory=dict)

    def replaced(self) -> str:
        """With what "run with" says, and files where the page has placeholders."""
        text = self.text
        for rule in filter(None, self.says.get("run with", "").split(";")):
            old, arrow, new = rule.strip().partition(" → ")
            if not arrow or old not in text:
                raise DocumentError(f"line {self.line}: “{rule.strip()}” replaces nothing in this block")
            text = text.replace(old, new)
        if self.language == "bash":
            for pattern, name in PLACEHOLDERS:
                text = pattern.sub(name, text)
        return text

    def commands(self) -> list[str]:
        """Of a block of commands, each with its further lines where a backslash ends one."""
        joined = re.sub(r"\\\n\s*", "", self.replaced())
        return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]

    def runs(self, build: bool) -> bool:
        """Whether it is run, by the tests that have a build folder or by the others."""
        if ELSEWHERE & self.says.keys() or self.says.get("needs", "gpu") != "gpu":
            return False
        if "needs package" in self.says and find_spec(self.says["needs package"]) is None:
            return False
        return (self.says.get("in") == "build") == build


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a Markdown file, in order. Lists have no indented blocks here."""
    found, says, lines = [], {}, page.read_text(encoding="utf-8").splitlines()
    at, before = 0, ""
    in_list = False
    while at < len(lines):
        line = lines[at]
        comment = LINE.match(line)
        if comment and comment[1] in KEYS:
            says[comment[1]] = comment[2]
        elif line.startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            text = "\n".join(lines[at + 1 : end]) + "\n"
            found.append(Block(at + 2, line[3:].strip(), text, says))
            says, at = {}, end
        elif line.startswith("    ") and not before.strip() and not in_list:
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            text = "\n".join(line[4:] for line in lines[at:end]).rstrip() + "\n"
            found.append(Block(at + 1, "bash", text, says))
            says, at = {}, end - 1
        elif line.strip():
            if says and not line.startswith("<!--"):
                raise DocumentError(f"{page}, line {at + 1}: no block follows <!-- {next(iter(says))}: … -->")
            in_list = bool(re.match(r"([-*]|\d+\.) ", line)) or (in_list and line.startswith(" "))
        before = lines[at]
        at += 1
    return found


def complaints(block: Block, root: Path) -> list[str]:
    """What is wrong with the lines beside a block, without running it."""
    wrong = []
    says = block.says
    if says.get("needs") is not None and says["needs"] not in NEEDS:
        wrong.append(f"needs: {says['needs']} is none of {', '.join(NEEDS)}")
    if says.get("in", "build") != "build":
        wrong.append(f"in: {says['in']} is not “build”")
    if "run by" in says and not (root / says["run by"]).is_file():
        wrong.append(f"run by: there is no {says['run by']}")
    if block.language not in ("python", "bash") and not ELSEWHERE & says.keys():
        what = block.language or "no language"
        wrong.append(f"a block of {what} that nothing runs: say file, part of, help, output of or run by")
    try:
        block.replaced()
    except DocumentError as error:
        wrong.append(str(error))
    return wrong
