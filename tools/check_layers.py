#!/usr/bin/env python3
"""Checks that the tree keeps the shape docs/architecture.md gives it.

    tools/check_layers.py [ROOT]

Errors, which end in exit code 1:
  - a stage includes a stage to its right (order: the pumice_stage lines of CMakeLists.txt, then cli)
  - files include each other in a circle
  - a module of python/pumice imports one of a later layer, or modules import each other in a circle
    (order and rules: tools/python_layers.py)
  - an include of our own names no file
  - a public header includes anything but <pumice/...> and the standard library
  - a header of device/pumice, which NVRTC reads, includes anything but others of device/pumice; one of
    device/pumice/shared, which the public headers read too, anything but its neighbours. types.h
    alone includes the host's <cstdint>, and files named *_host.h, which NVRTC never sees, the
    standard library
  - the reference includes anything of the engine: it must not share its mistakes
  - a file names something of the standard library, or of fmt, nlohmann, CLI, spdlog or hwy, without a header
    that declares it, its own or one that a header of ours includes (tools/std_names.py)
  - a file outside docs and benchmarks/records, which programs write, is longer than 600 lines
Warnings:
  - tests/<stage>/X_test.cpp where the stage (for tests/device: the folder device) has no X, unless a
    line of its first comment begins "Covers", naming what it does test
"""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from python_layers import Package  # noqa: E402
from std_names import complaints  # noqa: E402

MAX_LINES = 600
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
STAGE = re.compile(r"^\s*pumice_stage\(\s*(\w+)", re.MULTILINE)
CODE = {".cpp", ".hpp", ".h", ".cu", ".cuh"}
TEXT = CODE | {".py", ".sh", ".cmake", ".in", ".txt", ".json", ".md", ".yml", ".toml", ""}
SKIPPED = {".git", "build", "out", "docs", "__pycache__", "bin"}   # bin: a built program, in python/pumice
STANDARD = set(
    """
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath compare complex concepts condition_variable coroutine csetjmp
    csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
    exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource
    mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
    semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf
    string string_view syncstream system_error thread tuple type_traits typeindex typeinfo
    unordered_map unordered_set utility valarray variant vector version
    """.split()
)


class Tree:
    """The files of a source tree, what they include, and what is wrong with them."""

    def __init__(self, root):
        self.root = root
        self.errors = []
        self.warnings = []
        self.files = sorted(self.files_of(root))
        listing = (root / "CMakeLists.txt").read_text(encoding="utf-8")
        self.stages = STAGE.findall(listing) + ["cli"]
        self.others = {}   # file -> what others_of() found
        self.includes = {}   # file -> [(line, target file or None, name, is_quoted)]
        for path in self.files:
            if path.suffix in CODE:
                self.includes[path] = list(self.includes_of(path))

    def files_of(self, root):
        for folder, folders, files in os.walk(root):
            folder = Path(folder)
            folders[:] = [name for name in folders if self.is_ours(folder / name)]
            yield from (folder / name for name in files if name not in SKIPPED and (folder / name).is_file())

    def is_ours(self, folder):
        """No build folder, and no virtual environment, in which the README has users install the package."""
        hidden = folder.name.startswith(".") and folder != self.root / ".ci"
        return not hidden and folder.name not in SKIPPED and not (folder / "pyvenv.cfg").exists()

    def name(self, path):
        return path.relative_to(self.root).as_posix()

    def includes_of(self, path):
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            quoted = match[1] == '"'
            yield line, self.resolve(path, match[2], quoted), match[2], quoted

    def resolve(self, path, name, quoted):
        """The file of ours that an include names, or None."""
        folders = [self.root / f for f in ("include", "device", "src", "tests", ".")]
        for folder in [path.parent, *folders] if quoted else folders:
            if (folder / name).is_file():
                return (folder / name).resolve()
        return None

    def place(self, path):
        """(kind, stage): public, private, shared or device headers and sources; (other, None) elsewhere."""
        parts = path.relative_to(self.root).parts
        if parts[:3] == ("device", "pumice", "shared"):
            return "shared", None
        if parts[:2] == ("device", "pumice"):
            return "device", None
        if parts[:2] == ("include", "pumice"):
            return "public", parts[2]
        if parts[0] == "src":
            return "private", parts[1]
        if parts[0] == "cli":
            return "private", "cli"
        return ("reference" if parts[:2] == ("tests", "reference") else "other"), None

    def error(self, path, line, message):
        self.errors.append(f"{self.name(path)}:{line}: {message}")

    def check_includes(self):
        for path, includes in self.includes.items():
            kind, stage = self.place(path)
            if stage is not None and stage not in self.stages:
                self.error(path, 1, f"{stage} is no stage: {', '.join(self.stages)} are")
                continue
            for line, target, name, quoted in includes:
                if target is None and (quoted or name.startswith("pumice/")):
                    self.error(path, line, f"{name} names no file")
                self.check_reach(path, line, target, name)
                if kind == "public" and not (name.startswith("pumice/") or name in STANDARD):
                    self.error(
                        path, line, f"public header includes {name}: only <pumice/...> and standard headers may be"
                    )
                elif kind == "public" and quoted:
                    self.error(path, line, f'public header includes "{name}" in quotes: write <pumice/...>')
                integers = path.name == "types.h" and name in ("cstdint", "stdint.h")
                if kind == "shared" and not (name.startswith("pumice/shared/") or integers):
                    self.error(path, line, f"{name} is out of reach where NVRTC compiles this header")
                if kind == "device":
                    self.check_device(path, line, target, name)
                engine = target is not None and self.place(target)[0] in ("public", "private", "shared", "device")
                if kind == "reference" and engine:
                    self.error(path, line, f"the reference includes {name} of the engine it is to check")

    def check_device(self, path, line, target, name):
        """Device code sees device code; *_host.h the standard library too."""
        if path.name.endswith("_host.h") and name in STANDARD:
            return
        if not name.startswith("pumice/"):
            self.error(path, line, f"{name} is out of reach where NVRTC compiles this header")
        elif target is not None and self.place(target)[0] not in ("shared", "device"):
            self.error(path, line, f"{name} is no header of device/, the only tree NVRTC sees")

    def check_reach(self, path, line, target, name):
        """A stage sees itself and what stands left of it."""
        _, here = self.place(path)
        if target is None or here is None:
            return
        kind, there = self.place(target)
        if there is None:
            if kind not in ("shared", "device"):
                self.error(path, line, f"{name} is no part of the library")
            return
        if there in self.stages and self.stages.index(there) > self.stages.index(here):
            self.error(path, line, f"{here} includes {name} of {there}, which stands to its right")

    def check_names(self):
        for path in self.includes:
            if self.place(path)[0] not in ("shared", "device"):   # NVRTC's tree has its own rules, above
                for line, message in complaints(path.read_text(encoding="utf-8"), self.others_of(path)):
                    self.error(path, line, message)

    def others_of(self, path):
        """Headers that are not ours, of `path` and of the headers of ours that it includes."""
        if path not in self.others:
            self.others[path] = found = set()   # already there where files include each other in a circle
            for _, target, name, _ in self.includes.get(path, ()):
                found.update([name] if target is None else self.others_of(target))
        return self.others[path]

    def check_cycles(self):
        graph = {p: [t for _, t, _, _ in found if t in self.includes] for p, found in self.includes.items()}
        done = set()
        for start in graph:
            trail = [(start, iter(graph[start]))] if start not in done else []
            while trail:
                path, rest = trail[-1]
                target = next(rest, None)
                on_trail = [p for p, _ in trail]
                if target is None:
                    done.add(path)
                    trail.pop()
                elif target in on_trail:
                    circle = on_trail[on_trail.index(target) :] + [target]
                    self.error(path, 1, "include circle: " + " -> ".join(self.name(p) for p in circle))
                elif target not in done:
                    trail.append((target, iter(graph[target])))

    def check_tests(self):
        stems = {}
        for path in self.files:
            kind, stage = self.place(path)
            if kind in ("shared", "device"):
                stage = "device"
            if stage is not None:
                stems.setdefault(stage, set()).add(path.stem)
        for path in self.files:
            parts = path.relative_to(self.root).parts
            if parts[0] != "tests" or len(parts) != 3 or not path.name.endswith("_test.cpp"):
                continue
            stage, tested = parts[1], path.name[: -len("_test.cpp")]
            comment = re.match(r"(?://[^\n]*\n)*", path.read_text(encoding="utf-8"))[0]
            if stage not in [*self.stages, "device"]:
                self.error(path, 1, f"tests/{stage} mirrors no stage, so nothing builds this test")
            elif tested not in stems.get(stage, ()) and not re.search(r"^// Covers\b", comment, re.MULTILINE):
                self.warnings.append(
                    f'{self.name(path)}: {stage} has no {tested}; rename it or say what it "Covers"'
                )

    def check_lengths(self):
        for path in self.files:
            is_record = path.relative_to(self.root).parts[:2] == ("benchmarks", "records")
            if path.suffix not in TEXT or path.name == "LICENSE" or is_record:
                continue
            lines = path.read_bytes().count(b"\n")
            if lines > MAX_LINES:
                self.error(path, lines, f"{lines} lines: split what is longer than {MAX_LINES}")

    def check_python(self):
        for path, line, message in Package(self.root).check():
            self.error(path, line, message)

    def check(self):
        self.check_includes()
        self.check_names()
        self.check_cycles()
        self.check_python()
        self.check_tests()
        self.check_lengths()


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    tree.check()
    for warning in tree.warnings:
        print(f"warning: {warning}")
    for error in tree.errors:
        print(error, file=sys.stderr)
    print(f"{len(tree.files)} files, {len(tree.errors)} errors, {len(tree.warnings)} warnings")
    return 1 if tree.errors else 0


if __name__ == "__main__":
    sys.exit(main())
