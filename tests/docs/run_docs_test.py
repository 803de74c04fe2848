"""Stories about tools/run_docs.py and tools/doc_blocks.py: small pages in a small tree, with a stand-in for the program.

    run_docs_test.py TOOLS
"""

import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(TOOLS))
import doc_blocks  # noqa: E402
import run_docs  # noqa: E402

PROGRAM = """#!/bin/sh
case "$1 $2" in
  "doctor --json") echo '{"cuda_devices": []}' ;;
  "run --device") echo "pumice: CUDA is not available: no driver" >&2; exit 1 ;;
  "fail "*) echo "pumice: it fails" >&2; exit 1 ;;
  *) echo "$@" ;;
esac
"""


class Pages(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name, "tree")
        (self.root / "docs").mkdir(parents=True)
        (self.root / "examples").mkdir()
        (self.root / "examples/x.py").write_text("print('an example')\n", encoding="utf-8")
        self.program = Path(self.place.name, "pumice")
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(0o755)
        self.before, run_docs.ROOT = run_docs.ROOT, self.root
        (self.root / "given").mkdir()

    def tearDown(self):
        run_docs.ROOT = self.before
        self.place.cleanup()

    def errors(self, page, build=None):
        (self.root / "docs/page.md").write_text(page, encoding="utf-8")
        files = run_docs.Files(self.root / "given", self.program, self.root)
        return "\n".join(run_docs.check_page("docs/page.md", files, self.program, build))

    def test_commands_and_python_of_a_page_run_in_one_folder(self):
        page = (
            "# Page\n\nFirst\n\n    pumice info a > said.txt\n    python examples/x.py\n\n"
            "```python\nimport pathlib\ntext = pathlib.Path('said.txt').read_text()\n```\n\n"
            "and then\n\n```python\nassert text == 'info a\\n', text\n```\n"
        )
        self.assertEqual(self.errors(page), "")

    def test_what_fails_is_named_with_its_line_and_what_it_said(self):
        self.assertIn("docs/page.md:3: pumice fail now", self.errors("# Page\n\n    pumice fail now\n"))
        self.assertIn("pumice: it fails", self.errors("# Page\n\n    pumice fail now\n"))
        wrong = self.errors("# Page\n\n```python\nx = 1\nassert x == 2\n```\n")
        self.assertIn("line 5", wrong)   # of the page

    def test_a_replacement_is_made_and_a_stale_one_is_an_error(self):
        page = "# Page\n\n<!-- run with: fail → info; now → then -->\n\n    pumice fail now\n"
        self.assertEqual(self.errors(page), "")
        self.assertIn("replaces nothing", self.errors(page.replace("now → then", "new → then")))

    def test_without_a_gpu_a_sentence_has_to_say_so(self):
        page = "# Page\n\n<!-- needs: gpu -->\n\n    pumice run --device cuda\n"
        self.assertEqual(self.errors(page), "")
        self.assertIn("runs without one", self.errors(page.replace("run --device", "info --device")))
        self.assertIn("does not end with a sentence", self.errors(page.replace("run --device", "fail --device")))

    def test_code_that_nothing_runs_is_an_error(self):
        self.assertIn("a block of cpp that nothing runs", self.errors("# Page\n\n```cpp\nint x;\n```\n"))
        page = "# Page\n\n<!-- run by: examples/x.py -->\n```cpp\nint x;\n```\n"
        self.assertEqual(self.errors(page), "")
        self.assertIn("there is no examples/y.py", self.errors(page.replace("x.py", "y.py")))
        self.assertIn("is none of", self.errors("# Page\n\n<!-- needs: luck -->\n\n    true\n"))

    def test_a_line_that_belongs_to_no_block_is_an_error(self):
        self.assertIn("no block follows", self.errors("# Page\n\n<!-- needs: gpu -->\n\nText.\n\n    pumice fail\n"))

    def test_with_a_build_folder_only_what_needs_it_runs(self):
        page = "# Page\n\n<!-- in: build -->\n\n    build/release/bin/pumice info\n\nand\n\n    pumice fail\n"
        build = Path(self.place.name, "build")
        (build / "bin").mkdir(parents=True)
        (build / "bin/pumice").symlink_to(self.program)
        self.assertEqual(self.errors(page, build), "")
        self.assertIn("pumice fail", self.errors(page))

    def test_a_name_that_no_test_has_is_an_error(self):
        page = "# Page\n\n    echo 'Total Tests: {}'\n"
        self.assertEqual(self.errors(page.format(10)), "")
        self.assertIn("finds no test", self.errors(page.format(0)))
        self.assertIn("finds no test", self.errors("# Page\n\n    echo # --gtest_list_tests\n"))

    def test_indented_text_of_a_list_is_no_code(self):
        self.assertEqual(doc_blocks_of("- a\n\n    more of it\n"), [])
        self.assertEqual(doc_blocks_of("Text\n    more of it\n"), [])
        two = doc_blocks_of("Text\n\n    code \\\n        more\n\n    end\n")
        self.assertEqual(two, ["code \\\n    more\n\nend\n"])

    def test_placeholders_stand_for_files(self):
        block = doc_blocks.Block(1, "bash", "pumice info SCAN --out SCAN.ply\nmake demo SCAN=a.bin\n")
        self.assertEqual(block.commands(), ["pumice info scan.bin --out scan.bin.ply", "make demo SCAN=a.bin"])


def doc_blocks_of(text):
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.md")
        page.write_text(text, encoding="utf-8")
        return [block.text for block in doc_blocks.blocks_of(page)]


if __name__ == "__main__":
    unittest.main()
