#!/usr/bin/env python3
"""Checks that README.md, CONTRIBUTING.md and docs/ say what is so.

    tools/check_docs.py [--pumice PROGRAM] [--update]

  - relative links and pictures lead to files, and anchors to headings
  - `paths/like/this.cpp` that begin with a folder of ours exist; `a/*.cpp` matches something
  - the block below <!-- file: examples/x.cpp --> is that file
  - the block below <!-- help: pumice info --> is what that program prints for --help (--pumice)
--update writes such blocks anew.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FOLDERS = "benchmarks|cli|cmake|device|docs|examples|include|src|tests|tools"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*<>-]*)`")
BLOCK = re.compile(r"<!-- (file|help): ([^>]+?) -->\n+```(\w*)\n(.*?)```\n", re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Documents:
    def __init__(self, root, program):
        self.root, self.program = root, program
        self.errors = []
        # Decisions tell of their day: files that have gone since may be named there.
        self.pages = sorted({*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("docs/how_to/*.md"),
                             *root.glob("benchmarks/**/*.md")})  # fmt: skip

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

    def check(self, update):
        for page in self.pages:
            text = page.read_text(encoding="utf-8")
            self.check_links(page, text)
            self.check_paths(page, text)
            self.check_blocks(page, text, update)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pumice", type=Path, help="the program; without it help texts are left out")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    documents = Documents(options.root, options.pumice)
    documents.check(options.update)
    for error in documents.errors:
        print(error, file=sys.stderr)
    print(f"{len(documents.pages)} pages, {len(documents.errors)} errors")
    return 1 if documents.errors else 0


if __name__ == "__main__":
    sys.exit(main())
