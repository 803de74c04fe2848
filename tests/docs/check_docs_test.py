"""Stories about tools/check_docs.py: a page counts the tests of a small build folder, and names what a small tree has.

    check_docs_test.py PATH_OF_CHECK_DOCS
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = None

PAGE = """# Tests

<!-- tests -->

| label | tests | what they are |
|---|---|---|
| `core` | 2 | the core |
| `cli` | 1 | the program |
| | **3** | |
"""
TESTS = [("core.a", "core"), ("core.b", "core"), ("cli.a", "cli")]


def run(page, tests, *more):
    """Exit code, everything said, and the page afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        root, build = Path(folder, "tree"), Path(folder, "build")
        (root / "docs").mkdir(parents=True)
        build.mkdir()
        (root / "docs" / "testing.md").write_text(page, encoding="utf-8")
        listing = ""
        for name, label in tests:
            listing += f'add_test({name} "true")\n'
            listing += f'set_tests_properties({name} PROPERTIES LABELS "{label}")\n' if label else ""
        (build / "CTestTestfile.cmake").write_text(listing, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, CHECKER, "--root", root, "--build", build, *more],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        after = (root / "docs" / "testing.md").read_text(encoding="utf-8")
        return done.returncode, done.stdout + done.stderr, after


PROGRAM = """#!/bin/sh
case "$*" in
  "run --help") echo "  --device TEXT" ;;
  "kernels --help") printf 'Subcommands:\\n  list    Every kernel\\n' ;;
  "kernels list --help") echo "  --arch TEXT" ;;
  "kernels list --json") echo '{"per_architecture": {"sm_80": 1891}}' ;;
  *) exit 1 ;;
esac
"""
PACKAGES = """# package   found as   for
g++         CXX        all
cmake       -          all
ninja-build Ninja      all
python3-dev Python     python
libx-dev    x          all
libtest-dev GTest      tests
"""


class CheckTree(unittest.TestCase):
    """What a page says beside a small tree with a program."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root, self.program = Path(place.name), Path(place.name, "pumice")
        self.write("pumice", PROGRAM).chmod(0o755)
        self.write("Makefile", "test: build\n\tctest\nbuild:\n\ttrue\n")
        self.write("tools/packages.txt", PACKAGES)
        self.write("src/core/environment.cpp", 'read("PUMICE_LOG"); read("PUMICE_CACHE"); read("HOME");\n')
        self.write("examples/x.cpp", "int main() {\n  int x = 1;\n  int y = 2;\n}\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def errors(self, text, *more):
        page = self.write("README.md", text)
        done = subprocess.run(
            [sys.executable, CHECKER, "--root", self.root, "--pumice", self.program, *more],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1 if done.stderr else 0, done.stderr)
        return done.stderr, page.read_text(encoding="utf-8")

    def expect(self, right, wrong, said):
        self.assertEqual(self.errors(right)[0], "")
        self.assertIn(said, self.errors(wrong)[0])

    def test_commands_and_options_are_offered(self):
        text = "Use `pumice run x --device cuda` and `make test`.\n\n    pumice kernels list --arch sm_80 | head --lines 3\n"
        self.expect(text, text.replace("--device", "--gpu"), "pumice run has no option --gpu")
        self.assertIn("has no command walk", self.errors("Use `pumice walk`.\n")[0])
        self.assertIn("no target tests", self.errors("Use `make tests`.\n")[0])
        self.assertIn("has no option --all", self.errors("# A\n\n    pumice run SCAN --all\n")[0])

    def test_variables_are_those_that_are_read(self):
        table = "<!-- variables -->\n\n| variable | |\n|---|---|\n| `PUMICE_LOG` | a |\n| `PUMICE_CACHE` | b |\n"
        self.expect(table, table.replace("CACHE", "CASH"), "PUMICE_CASH is in the table and not read")
        self.assertIn("PUMICE_CACHE is read by Pumice", self.errors(table.replace("CACHE", "CASH"))[0])

    def test_formats_are_those_that_are_read(self):
        self.write("src/points/read.cpp", 'name.ends_with(".pcd.bin"); {".bin", PointFormat::raw}, {".ply", PointFormat::ply}\n')
        table = "<!-- formats -->\n\n| file | |\n|---|---|\n| `.bin` | a |\n| `a_f32x4.bin` | |\n| `.pcd.bin` | |\n| `.ply` | b |\n"
        self.expect(table, table.replace(".ply", ".las"), ".las is not both")

    def test_kernels_are_counted(self):
        text = "All <!-- count: kernels sm_80 -->1,891 kernels.\n"
        self.expect(text, text.replace("1,891", "1,888"), "1,888 kernels for sm_80, 1,891 there are")
        self.assertEqual(self.errors(text.replace("1,891", "7"), "--update"), ("", text))

    def test_the_line_that_installs_names_every_package(self):
        text = "<!-- needs: root -->\n\n    apt-get install g++ libx-dev \\\n        python3-dev python3-venv\n"
        self.expect(text, text.replace("libx-dev", "liby-dev"), "lacks libx-dev")

    def test_a_part_of_a_file_is_in_it_wherever_it_is_indented(self):
        text = "<!-- part of: examples/x.cpp -->\n```cpp\nint x = 1;\nint y = 2;\n```\n"
        self.expect(text, text.replace("y = 2", "y = 3"), "no part of examples/x.cpp")


class CheckDocs(unittest.TestCase):
    def expect_error(self, page, tests, *said):
        code, text, after = run(page, tests)
        self.assertEqual(code, 1, text)
        self.assertEqual(after, page)
        for part in said:
            self.assertIn(part, text)

    def test_a_table_that_counts_what_there_is_passes(self):
        code, text, _ = run(PAGE, TESTS)
        self.assertEqual(code, 0, text)

    def test_another_test_makes_the_table_stale(self):
        self.expect_error(PAGE, [*TESTS, ("core.c", "core")], "core: 2 tests in the table, 3 there are")

    def test_a_wrong_total_is_seen_even_where_every_row_is_right(self):
        self.expect_error(PAGE.replace("**3**", "**4**"), TESTS, "numbers of tests differ")

    def test_a_label_without_a_row_is_named(self):
        self.expect_error(PAGE, [*TESTS, ("ops.a", "ops")], "1 tests have the label 'ops'")
        self.expect_error(PAGE, [*TESTS, ("ops.a", "")], "1 tests have the label ''")

    def test_a_row_without_tests_is_named(self):
        self.expect_error(PAGE, TESTS[:2], "no test has the label 'cli'")

    def test_a_program_that_is_not_built_cannot_be_counted(self):
        tests = [*TESTS, ("pumice_ops_test_NOT_BUILT", "")]
        self.expect_error(PAGE, tests, "pumice_ops_test is not built")

    def test_update_writes_the_numbers(self):
        tests = TESTS + [(f"core.{i}", "core") for i in range(1000)]
        code, text, after = run(PAGE, tests, "--update")
        self.assertEqual(code, 0, text)
        self.assertEqual(after, PAGE.replace("| 2 |", "| 1,002 |").replace("**3**", "**1,003**"))
        self.assertEqual(run(after, tests)[0], 0)


if __name__ == "__main__":
    CHECKER = Path(sys.argv.pop(1)).resolve()
    unittest.main()
