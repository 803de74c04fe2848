"""Stories about tools/check_layers.py: each spoils one thing in a small sound tree.

    check_layers_test.py PATH_OF_CHECK_LAYERS
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = None

SOUND = {
    "CMakeLists.txt": "pumice_stage(core)\npumice_stage(points  core)\npumice_stage(ops     points)\n",
    "device/pumice/shared/types.h": "#include <cstdint>\n",
    "device/pumice/platform.h": "#include <pumice/shared/types.h>\n#include <pumice/platform_host.h>\n",
    "device/pumice/platform_host.h": "#include <type_traits>\n",
    "include/pumice/core/a.hpp": "#include <vector>\n#include <pumice/shared/types.h>\n",
    "include/pumice/points/b.hpp": "#include <pumice/core/a.hpp>\n",
    "include/pumice/ops/c.hpp": "#include <pumice/points/b.hpp>\n",
    "src/core/a.cpp": '#include <fmt/core.h>\n#include <pumice/core/a.hpp>\n#include "core/detail.hpp"\n',
    "src/core/detail.hpp": "#include <tbb/task_arena.h>\n",
    "src/ops/cpu/c.cpp": '#include <pumice/ops/c.hpp>\n#include "core/detail.hpp"\n',
    "cli/main.cpp": '#include "main.hpp"\n#include <pumice/ops/c.hpp>\n',
    "cli/main.hpp": "#include <CLI/CLI.hpp>\n",
    "tests/core/a_test.cpp": "#include <pumice/ops/c.hpp>\n",
    "tests/reference/dense.cpp": "#include <vector>\n",
    "python/pumice/__init__.py": "from . import _C\nfrom .coords import Coordinates\n",
    "python/pumice/window.py": "import torch\nfrom . import _C\n",
    "python/pumice/coords.py": "from . import window\n",
    "python/pumice/ops/__init__.py": "from .rows import take\n",
    "python/pumice/ops/modes.py": "",
    "python/pumice/ops/rows.py": "from ..coords import Coordinates\nfrom . import modes\n",
    "python/pumice/nn/__init__.py": "from ..ops import take\n\ndef later():\n    from .. import window\n",
    "docs/long.md": "line\n" * 900,
    "build/junk.cpp": '#include "nowhere.hpp"\n',
}


def run(changes):
    """Exit code and everything said about the sound tree with `changes`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**SOUND, **changes}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, CHECKER, folder], capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def expect_error(self, changes, *said):
        code, text = run(changes)
        self.assertEqual(code, 1, text)
        self.assertIn("1 errors", text)
        for part in said:
            self.assertIn(part, text)

    def test_a_sound_tree_passes(self):
        code, text = run({})
        self.assertEqual(code, 0, text)
        self.assertIn("0 errors, 0 warnings", text)

    def test_a_stage_may_not_look_right(self):
        self.expect_error(
            {"src/points/b.cpp": "\n\n#include <pumice/ops/c.hpp>\n"},
            "src/points/b.cpp:3: points includes pumice/ops/c.hpp of ops",
        )

    def test_a_private_header_of_a_later_stage_is_out_of_reach_too(self):
        self.expect_error(
            {"src/ops/secret.hpp": "", "src/core/a.cpp": '#include "ops/secret.hpp"\n'},
            "src/core/a.cpp:1: core includes ops/secret.hpp of ops",
        )

    def test_the_library_may_not_look_at_tests(self):
        self.expect_error(
            {"tests/support/data.hpp": "", "src/core/a.cpp": '#include "support/data.hpp"\n'},
            "support/data.hpp is no part of the library",
        )

    def test_a_circle_inside_a_stage_is_found_once(self):
        self.expect_error(
            {"src/core/x.hpp": '#include "core/y.hpp"\n', "src/core/y.hpp": '#include "core/x.hpp"\n'},
            "include circle: src/core/x.hpp -> src/core/y.hpp -> src/core/x.hpp",
        )

    def test_a_public_header_takes_no_third_party_header(self):
        for header in ("fmt/core.h", "cuda_runtime.h", "Python.h", "unistd.h"):
            self.expect_error({"include/pumice/core/a.hpp": f"#include <{header}>\n"}, f"includes {header}")

    def test_a_public_header_takes_no_private_header(self):
        self.expect_error({"include/pumice/core/a.hpp": '#include "core/detail.hpp"\n'}, "core/detail.hpp")

    def test_a_shared_header_stays_within_reach_of_nvrtc(self):
        self.expect_error({"device/pumice/shared/types.h": "#include <vector>\n"}, "vector is out of reach")
        self.expect_error({"device/pumice/shared/key.h": "#include <cstdint>\n"}, "cstdint is out of reach")

    def test_device_code_sees_only_device_code(self):
        self.expect_error({"device/pumice/block/scan.h": "#include <cmath>\n"}, "cmath is out of reach")
        self.expect_error(
            {"device/pumice/block/scan.h": "#include <pumice/core/a.hpp>\n"},
            "pumice/core/a.hpp is no header of device/",
        )
        self.expect_error({"device/pumice/platform_host.h": "#include <fmt/core.h>\n"}, "fmt/core.h is out of reach")

    def test_a_shared_header_does_not_see_the_rest_of_device_code(self):
        self.expect_error(
            {"device/pumice/shared/key.h": "#include <pumice/platform.h>\n"}, "pumice/platform.h is out of reach"
        )

    def test_the_reference_shares_no_code_with_the_engine(self):
        self.expect_error(
            {"tests/reference/dense.cpp": "#include <pumice/core/a.hpp>\n"}, "the reference includes"
        )

    def test_an_include_that_names_no_file_is_an_error(self):
        self.expect_error({"src/core/a.cpp": "#include <pumice/core/gone.hpp>\n"}, "names no file")

    def test_a_name_needs_the_header_that_declares_it(self):
        text = "\n// std::map\nstd::span<int> a;\nstd::span<int> b;\n"
        self.expect_error({"src/core/a.cpp": text}, "src/core/a.cpp:3: std::span without <span>")
        self.expect_error({"src/core/a.cpp": "auto c = std::byte();"}, "std::byte without <cstddef>")
        self.expect_error({"src/core/a.cpp": "auto a = '\"' + ::std::string(b) + '\"';"}, "std::string without <string>")
        self.expect_error({"src/core/a.cpp": "#include <algorithm>\nstd::ranges::less a;"}, "less without <functional>")
        self.expect_error({"src/core/a.cpp": "std::get<0>(x);"}, "without <array> or <tuple> or <utility> or <variant>")
        self.expect_error({"src/core/a.cpp": "std::filesystem::path p;"}, "filesystem::path without <filesystem>")
        self.expect_error({"cli/main.hpp": "void add(CLI::App&);"}, "CLI::App without a header of <CLI/>")

    def test_a_name_may_be_declared_through_a_header_of_ours(self):
        of_a = "#include <pumice/core/a.hpp>\n"
        for text in (
            "#include <span>\nstd::span<int> a;\n",
            of_a + "std::vector<int>::iterator a = std::begin(b);\n",
            of_a.replace("core/a", "ops/c") + "std::vector<int> a;\n",
            "const char quote = '\"', other = '\\''; const char* a = \"std::map x\"; int b = 1'000; // std::set\n",
            'const char* raw = R"x(std::map "std::set)x";\n',
            "const char* text = \"std::map\";   // std::set\n/* std::list\n */\n",
            "namespace CLI {\nclass App;\n}\nvoid add(CLI::App&);\n",
            "#include <fmt/format.h>\nauto a = fmt::format();\nauto b = pumice::std::any;\n",
            "#include <utility>\n#include <string>\nauto a = std::move(std::string::npos);\n",
        ):
            code, said = run({"src/ops/b.cpp": text})
            self.assertEqual(code, 0, said)

    def test_a_name_that_no_header_is_known_for_is_an_error(self):
        self.expect_error({"src/core/a.cpp": "std::flat_map<int, int> m;"}, "std::flat_map is in no line")

    def test_a_folder_that_is_no_stage_is_an_error(self):
        self.expect_error({"src/misc/m.cpp": "int m;\n"}, "misc is no stage")

    def test_a_module_may_not_import_a_later_layer(self):
        self.expect_error(
            {"python/pumice/coords.py": "import torch\n\nfrom .nn import layer\n", "python/pumice/nn/__init__.py": ""},
            "python/pumice/coords.py:3: sites imports pumice.nn of layers",
        )

    def test_the_way_of_writing_an_import_does_not_matter(self):
        for spelled in (
            "import pumice.nn\n",
            "from pumice import nn\n",
            "from . import nn\n",
            "def later():\n    from .nn import layer\n",
            "class Late:\n    def method(self):\n        if self:\n            from . import nn\n",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .nn import layer\n",
            "try:\n    from .nn import layer\nexcept ImportError:\n    pass\n",
            "import importlib\nnn = importlib.import_module('pumice.nn')\n",
        ):
            # Nothing of nn imports this module here, so that no circle is found as well.
            found = {"python/pumice/window.py": spelled, "python/pumice/nn/__init__.py": ""}
            if "from pumice" in spelled or "import pumice" in spelled:
                found["python/pumice/__init__.py"] = ""
            with self.subTest(spelled):
                code, text = run(found)
                self.assertEqual(code, 1, text)
                self.assertIn("base imports pumice.nn of layers", text)

    def test_nothing_below_imports_the_package_itself(self):
        self.expect_error(
            {"python/pumice/window.py": "from . import __version__\n", "python/pumice/__init__.py": ""},
            "window.py:1: base imports pumice of package",
        )

    def test_modules_of_one_layer_import_each_other_in_no_circle(self):
        self.expect_error(
            {"python/pumice/ops/modes.py": "def later():\n    from .rows import take\n"},
            "import circle: pumice.ops.rows -> pumice.ops.modes -> pumice.ops.rows",
        )

    def test_types_alone_make_a_circle_too(self):
        self.expect_error(
            {"python/pumice/ops/modes.py": "if TYPE_CHECKING:\n    from .rows import take\n"}, "import circle: pumice.ops"
        )

    def test_a_module_of_a_package_brings_the_package_along(self):
        self.expect_error(
            {
                "python/pumice/nn/__init__.py": "from .chains import chain\n",
                "python/pumice/nn/chains/__init__.py": "from ..layer import layer\nfrom .chain import chain\n",
                "python/pumice/nn/chains/chain.py": "",
                "python/pumice/nn/layer.py": "from .chains.chain import chain\n",
            },
            "import circle: pumice.nn.chains -> pumice.nn.layer -> pumice.nn.chains",
        )

    def test_a_module_without_a_layer_is_an_error(self):
        self.expect_error({"python/pumice/stray.py": ""}, "pumice.stray stands in no layer")

    def test_an_import_that_names_no_module_is_an_error(self):
        self.expect_error({"python/pumice/coords.py": "from .gone import x\n"}, "pumice.gone names no module")

    def test_the_documentation_has_the_layers_of_the_checker(self):
        self.expect_error({"docs/architecture.md": "| base | `_checks` |\n"}, "docs/architecture.md:1: its table")

    def test_a_long_file_is_an_error_outside_docs(self):
        self.expect_error({"src/core/a.cpp": "int a;\n" * 601}, "601 lines")

    def test_a_record_may_be_longer(self):
        long = "1\n" * 601
        self.assertEqual(run({"benchmarks/records/h200/driving.json": long})[0], 0)
        code, text = run({"benchmarks/driving.json": long})
        self.assertEqual(code, 1)
        self.assertIn("601 lines", text)

    def test_a_file_of_600_lines_passes(self):
        code, text = run({"src/core/a.cpp": "int a;\n" * 600})
        self.assertEqual(code, 0, text)

    def test_a_test_without_its_source_is_a_warning_unless_it_says_what_it_covers(self):
        code, text = run({"tests/core/other_test.cpp": "// Stories.\nint t;\n"})
        self.assertEqual(code, 0, text)
        self.assertIn("1 warnings", text)
        code, text = run({"tests/core/other_test.cpp": "// Stories.\n// Covers a.\nint t;\n"})
        self.assertIn("0 warnings", text)

    def test_device_code_is_tested_in_tests_device(self):
        code, text = run({"tests/device/platform_test.cpp": "// Stories.\n"})
        self.assertEqual(code, 0, text)
        self.assertIn("0 warnings", text)
        code, text = run({"tests/device/other_test.cpp": "// Stories.\n"})
        self.assertIn("1 warnings", text)

    def test_a_virtual_environment_is_not_ours(self):
        files = {"venv/lib/numpy/numpy.h": '#include "nowhere.hpp"\n', "venv/lib/long.py": "a = 1\n" * 601}
        self.assertEqual(run({**files, "venv/pyvenv.cfg": "home = /usr/bin\n"})[0], 0)
        self.assertEqual(run(files)[0], 1)

    def test_a_test_of_no_stage_is_an_error(self):
        self.expect_error({"tests/misc/a_test.cpp": ""}, "mirrors no stage")


if __name__ == "__main__":
    CHECKER = sys.argv.pop(1)
    unittest.main()
