#!/usr/bin/env python3
"""Checks that the documentation says what is so.

    tools/check_docs.py [--pumice PROGRAM] [--build FOLDER] [--update]

  - relative links and pictures lead to files, and anchors to headings
  - `paths/like/this.cpp` that begin with a folder of ours exist; `a/*.cpp` matches something
  - the block below <!-- file: examples/x.cpp --> is that file
  - the block below <!-- part of: examples/x.cpp --> is a piece of that file, wherever it is indented there
  - the block below <!-- help: pumice info --> is what that program prints for --help (--pumice)
  - every block says how it is run, and is run by a test: tools/doc_blocks.py
  - options of `pumice run --device` and of `--device` alone are offered, `make x` is a target
  - the table below <!-- variables --> has the environment variables that Pumice reads, no more and no fewer
  - the first column of the table below <!-- formats --> has the endings that `read_points` knows
  - <!-- count: kernels sm_90a -->1,135: as many kernels as `pumice kernels list` has for it (--pumice)
  - a line `apt-get install g++ …` names what the Python package needs of tools/packages.txt
  - the table of tests below <!-- tests --> counts, label by label, what ctest lists in the build folder
    (--build; all test programs must be built, since they say themselves what they hold)
--update writes such blocks and numbers anew.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from doc_blocks import DocumentError, blocks_of, complaints  # noqa: E402

FOLDERS = "benchmarks|cli|cmake|device|docs|examples|include|python|src|tests|tools"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*<>-]*)`")
BLOCK = re.compile(r"<!-- (file|help): ([^>]+?) -->\n+```(\w*)\n(.*?)```\n", re.DOTALL)
TABLE = re.compile(r"<!-- tests -->\n+((?:\|.*\n)+)")
COUNT = re.compile(r"^\| `(\w+)` \| ([\d,]+) \|", re.MULTILINE)
TOTAL = re.compile(r"^\| \| \*\*([\d,]+)\*\* \|", re.MULTILINE)
KERNELS = re.compile(r"<!-- count: kernels (sm_\w+) -->([\d,]+)")
VARIABLES = re.compile(r"<!-- variables -->\n+((?:\|.*\n)+)")
FORMATS = re.compile(r"<!-- formats -->\n+((?:\|.*\n)+)")
ENDING = re.compile(r"^\| .*?`[^`]*?((?:\.[a-z]+)+)`", re.MULTILINE)
VARIABLE = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
INSTALLED = re.compile(r"apt-get install (g\+\+(?:[^\n\\]|\\\n)*)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def count_tests(build):
    """{label: number of tests} of a build folder; a sentence where it cannot tell."""
    # From a folder that only points there: ctest writes a log even when it runs nothing.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{build.resolve()}")\n', encoding="utf-8")
        listing = subprocess.run(
            ["ctest", "--show-only=json-v1"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
    counts = collections.Counter()
    for test in json.loads(listing)["tests"]:
        if test["name"].endswith("_NOT_BUILT"):
            return f"{test['name'].removesuffix('_NOT_BUILT')} is not built in {build}; build all of it"
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        counts[labels[0][0] if labels else ""] += 1
    return counts or f"{build} holds no tests; name a build folder"


class Documents:
    def __init__(self, root, program, build):
        self.root, self.program = root, program
        self.tests = count_tests(build) if build else None
        self.errors = []
        # Decisions tell of their day: files that have gone since may be named there.
        self.pages = sorted({*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("docs/how_to/*.md"),
                             *root.glob("benchmarks/**/*.md"), *root.glob("models/*.md"), *root.glob("licenses/*.md"),
                             *root.glob(".github/**/*.md")})  # fmt: skip
        self.helps = {}

    def error(self, page, message):
        self.errors.append(f"{page.relative_to(self.root)}: {message}")

    def check_links(self, page, text):
        for target in LINK.findall(FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, place = target.partition("#")
            path = (page.parent / name) if name else page
            if not path.exists():
                self.error(page, f"({target}) leads nowhere")
            elif place:
                headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                if place not in map(anchor, headings):
                    self.error(page, f"({target}): {name or 'this page'} has no such heading")

    def check_paths(self, page, text):
        for name in PATH.findall(text):
            if "<" in name:   # a pattern such as tests/<stage>/
                continue
            if not any(self.root.glob(name.rstrip("/"))):
                self.error(page, f"`{name}` is not there")

    def wanted(self, kind, name):
        if kind == "file":
            return (self.root / name).read_text(encoding="utf-8")
        command = [str(self.program), *name.split()[1:], "--help"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def check_blocks(self, page, text, update):
        def same(match):
            kind, name, language, block = match.groups()
            if kind == "help" and self.program is None:
                return match[0]
            wanted = self.wanted(kind, name)
            if block != wanted and not update:
                self.error(page, f"the block of {name} differs; tools/check_docs.py --update writes it")
            return f"<!-- {kind}: {name} -->\n```{language}\n{wanted}```\n"

        changed = BLOCK.sub(same, text)
        if update and changed != text:
            page.write_text(changed, encoding="utf-8")
            print(f"updated {page.relative_to(self.root)}")

    def check_parts(self, page, blocks):
        for block in blocks:
            for wrong in complaints(block, self.root):
                self.error(page, f"line {block.line}: {wrong}")
            name = block.says.get("part of")
            if name is None:
                continue
            lines = [line.strip() for line in block.text.splitlines()]
            path = self.root / name
            there = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
            if not any(there[i : i + len(lines)] == lines for i in range(len(there))):
                self.error(page, f"line {block.line}: this block is no part of {name}")

    def help_of(self, words):
        """What `pumice words… --help` prints; nothing for what is no command of the program."""
        if words not in self.helps:
            done = subprocess.run([str(self.program), *words, "--help"], capture_output=True, text=True, check=False)
            self.helps[words] = done.stdout if done.returncode == 0 else ""
        return self.helps[words]

    def check_command(self, page, command):
        """Of text such as `pumice kernels list --json` or `make test`."""
        words = command.split()
        if words[:1] == ["make"] and (self.root / "Makefile").exists():
            rules = (self.root / "Makefile").read_text(encoding="utf-8")
            targets = set(re.findall(r"^([a-z]+):", rules, re.MULTILINE))
            for word in words[1:2]:
                if re.fullmatch("[a-z]+", word) and word not in targets:
                    self.error(page, f"`{command}`: the Makefile has no target {word}")
        if words[:1] != ["pumice"] or self.program is None or words[1:2] == ["convert"]:
            return
        named = tuple(word for word in words[1:2] if re.fullmatch("[a-z]+", word))
        if not named:
            return
        commands = self.help_of(named).partition("Subcommands:")[2]
        if len(words) > 2 and re.search(rf"^  {re.escape(words[2])} ", commands, re.MULTILINE):
            named += (words[2],)
        text = self.help_of(named)
        if not text:
            self.error(page, f"`{command}`: pumice has no command {' '.join(named)}")
            return
        offered = set(OPTION.findall(text))
        for option in OPTION.findall(command):
            if option not in offered and option not in ("--help", "--version"):
                self.error(page, f"`{command}`: pumice {' '.join(named)} has no option {option}")

    def check_commands(self, page, text, blocks):
        for block in blocks:
            for command in block.commands() if block.language == "bash" else []:
                found = re.search(r"(?:^|&& |\s)((?:pumice|make) .*)", command)
                if found:
                    self.check_command(page, re.split(r"&&|[|<>#]", found[1])[0].strip())
        for code in CODE.findall(FENCE.sub("", text)):
            self.check_command(page, code)

    def check_variables(self, page, text):
        for table in VARIABLES.findall(text):
            named = set(VARIABLE.findall(table))
            source = (self.root / "src/core/environment.cpp").read_text(encoding="utf-8")
            read = set(re.findall(r'"(PUMICE_\w+)"', source))
            for name in sorted(named ^ read):
                how = "in the table and not read by Pumice" if name in named else "read by Pumice and not in the table"
                self.error(page, f"{name} is {how}")

    def check_formats(self, page, text):
        for table in FORMATS.findall(text):
            source = (self.root / "src/points/read.cpp").read_text(encoding="utf-8")
            known = set(re.findall(r'\{"(\.\w+)", PointFormat', source)) | set(re.findall(r'ends_with\("(\.[\w.]+)"\)', source))
            for ending in sorted(set(ENDING.findall(table)) ^ known):
                self.error(page, f"{ending} is not both in the table of formats and in src/points/read.cpp")

    def check_packages(self, page, text):
        for found in INSTALLED.findall(text):
            named = set(found.replace("\\\n", " ").split())
            rows = (self.root / "tools/packages.txt").read_text(encoding="utf-8").splitlines()
            rows = [row.split() for row in rows if row and not row.startswith("#")]
            # pip brings CMake and Ninja.
            wanted = {row[0] for row in rows if row[2] in ("all", "python")} - {"cmake", "ninja-build"} | {"python3-venv"}
            for name in sorted(named ^ wanted):
                self.error(page, f"the line apt-get install {'has' if name in named else 'lacks'} {name}")

    def check_kernels(self, page, text, update):
        """Counts of kernels beside <!-- count: kernels ARCHITECTURE -->."""
        if self.program is None or not KERNELS.search(text):
            return
        command = [str(self.program), "kernels", "list", "--json"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        counts = json.loads(said)["per_architecture"]

        def same(match):
            count = f"{counts.get(match[1], 0):,}"
            if count != match[2] and not update:
                self.error(page, f"{match[2]} kernels for {match[1]}, {count} there are; --update writes it")
            return f"<!-- count: kernels {match[1]} -->{count}"

        changed = KERNELS.sub(same, text)
        if update and changed != text:
            page.write_text(changed, encoding="utf-8")
            print(f"updated {page.relative_to(self.root)}")

    def check_table(self, page, match, update):
        """The table with the counts there are, after saying where it has others."""
        table = match[1]
        if isinstance(self.tests, str):
            self.error(page, f"the tests cannot be counted: {self.tests}")
            return match[0]
        rows = {label: int(number.replace(",", "")) for label, number in COUNT.findall(table)}
        for label in sorted(self.tests.keys() - rows.keys()):
            self.error(page, f"{self.tests[label]} tests have the label {label!r}, which has no row in the table")
        for label in sorted(rows.keys() - self.tests.keys()):
            self.error(page, f"no test has the label {label!r} of the table")
        wanted = COUNT.sub(lambda row: f"| `{row[1]}` | {self.tests.get(row[1], 0):,} |", table)
        wanted = TOTAL.sub(f"| | **{sum(self.tests.values()):,}** |", wanted)
        if wanted != table and not update:
            for label in sorted(rows.keys() & self.tests.keys()):
                if rows[label] != self.tests[label]:
                    self.error(page, f"{label}: {rows[label]} tests in the table, {self.tests[label]} there are")
            self.error(page, "the numbers of tests differ; tools/check_docs.py --build FOLDER --update writes them")
        return match[0].replace(table, wanted)

    def check_tables(self, page, update):
        text = page.read_text(encoding="utf-8")
        changed = TABLE.sub(lambda match: self.check_table(page, match, update), text)
        if update and changed != text:
            page.write_text(changed, encoding="utf-8")
            print(f"updated {page.relative_to(self.root)}")

    def check(self, update):
        for page in self.pages:
            text = page.read_text(encoding="utf-8")
            self.check_links(page, text)
            self.check_paths(page, text)
            self.check_blocks(page, text, update)
            self.check_kernels(page, page.read_text(encoding="utf-8"), update)
            self.check_variables(page, text)
            self.check_formats(page, text)
            self.check_packages(page, text)
            try:
                blocks = blocks_of(page)
                self.check_parts(page, blocks)
                self.check_commands(page, text, blocks)
            except DocumentError as error:
                self.error(page, str(error))
            if self.tests is not None:
                self.check_tables(page, update)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pumice", type=Path, help="the program; without it help texts are left out")
    parser.add_argument("--build", type=Path, help="the build folder; without it tests are not counted")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    documents = Documents(options.root, options.pumice, options.build)
    documents.check(options.update)
    for error in documents.errors:
        print(error, file=sys.stderr)
    print(f"{len(documents.pages)} pages, {len(documents.errors)} errors")
    return 1 if documents.errors else 0


if __name__ == "__main__":
    sys.exit(main())
