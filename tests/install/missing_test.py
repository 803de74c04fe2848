"""Stories about configuring where something is missing: everything is named at once, with the command that installs it.

    missing_test.py CMAKE SOURCE
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CMAKE = SOURCE = None


def rows():
    """(package, name of find_package, what needs it) of tools/packages.txt."""
    lines = (SOURCE / "tools/packages.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split()) for line in lines if line and not line.startswith("#")]


def configure(*options, path=None):
    """Exit code and everything said."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        for name in ("CXX", "CMAKE_TOOLCHAIN_FILE", "CMAKE_GENERATOR"):
            environment.pop(name, None)
        if path is not None:
            environment["PATH"] = str(path)
        done = subprocess.run(
            [CMAKE, "-G", "Ninja", "-S", SOURCE, "-B", folder, *options],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def installed_by(text):
    """Packages of the one line that installs them."""
    lines = re.findall(r"^ +apt-get install (.*)$", text, re.MULTILINE)
    return lines[0].split() if len(lines) == 1 else lines


def without(*names):
    return [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in names]


class Missing(unittest.TestCase):
    def expect(self, outcome, packages, *said):
        code, text = outcome
        self.assertNotEqual(code, 0, text)
        self.assertEqual(sorted(installed_by(text)), sorted(packages), text)
        self.assertEqual(text.count("CMake Error"), 1, text)
        for part in said:
            self.assertIn(part, " ".join(text.split()))

    def test_all_libraries_that_are_missing_are_named_at_once(self):
        apart = ("-", "CXX", "Ninja", "Python", "Python3")
        found = [(package, name) for package, name, _ in rows() if name not in apart]
        self.assertGreater(len(found), 9)
        outcome = configure(*without(*(name for _, name in found)))
        self.expect(outcome, [package for package, _ in found], "TBB, hwy, Eigen3 3.4, fmt")

    def test_who_builds_the_python_package_is_not_asked_for_googletest(self):
        missing = without("hwy", "GTest", "benchmark", "Python", "nanobind")
        options = ["-DPUMICE_PYTHON=ON", "-DPUMICE_TESTS=OFF", "-DPUMICE_BENCHMARKS=OFF"]
        self.expect(configure(*missing, *options), ["libhwy-dev", "python3-dev"], "hwy, Python 3.10")

    def test_nanobind_comes_from_pypi(self):
        options = ["-DPUMICE_PYTHON=ON", "-DPUMICE_TESTS=OFF", "-DPUMICE_BENCHMARKS=OFF"]
        code, text = configure(*without("nanobind", "PNG"), f"-DPython_EXECUTABLE={sys.executable}", *options)
        self.assertNotEqual(code, 0)
        if "python3-dev" not in text:   # of the interpreter that runs this
            self.assertIn("    pip install 'nanobind>=3.1,<4' 'nanobind-backend>=1.0,<2'\n", text)
        self.assertIn("libpng-dev", installed_by(text))

    def test_a_bare_machine_is_told_of_compiler_ninja_and_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            dpkg = Path(folder, "dpkg-query")   # knows fmt alone
            text = '#!/bin/sh\ncase "$3" in libfmt-dev) printf installed ;; *) exit 1 ;; esac\n'
            dpkg.write_text(text, encoding="utf-8")
            dpkg.chmod(0o755)
            outcome = configure(path=folder)
            dpkg.unlink()
            elsewhere = configure("-DPUMICE_TESTS=OFF", "-DPUMICE_BENCHMARKS=OFF", path=folder)
        wanted = [p for p, name, part in rows() if name != "-" and part != "python"]
        self.expect(outcome, [p for p in wanted if p != "libfmt-dev"], "Ninja, a C++ compiler, Python3, TBB")
        wanted = [p for p, name, part in rows() if name != "-" and part == "all"]
        self.expect(elsewhere, wanted, "On other systems install the packages that hold these")

    def test_set_up_reads_the_first_column(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("awk", "bash", "dirname"):   # a system without dpkg-query
                Path(folder, name).symlink_to(shutil.which(name))
            done = subprocess.run(
                [SOURCE / "tools/setup.sh"], env={"PATH": folder}, capture_output=True, text=True, check=False
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.split("equivalents of: ")[1].split(), [package for package, _, _ in rows()])


if __name__ == "__main__":
    SOURCE, CMAKE = Path(sys.argv.pop(2)).resolve(), shutil.which(sys.argv.pop(1))
    unittest.main()
