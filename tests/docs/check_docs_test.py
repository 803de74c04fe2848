"""Stories about tools/check_docs.py: a page counts the tests of a small build folder.

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
