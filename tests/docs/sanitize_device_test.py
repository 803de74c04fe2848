"""Stories about tools/sanitize_device.sh: programs that only say what they were asked for stand for Pumice and NVIDIA's tool.

    sanitize_device_test.py PATH_OF_SANITIZE_DEVICE
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = None

# Says which kernels it loads, other ones for many rows; `simulate` writes its scan.
PUMICE = """#!/bin/sh
if [ "$1" = simulate ]; then touch "$5"; exit; fi
if [ -n "$FAILS" ]; then echo "pumice: $FAILS" >&2; exit 1; fi
echo "$PUMICE_KERNEL_ROWS $*" >>"$CALLS"
tile=tile_64
case "$*" in *--voxel*) [ "${PUMICE_KERNEL_ROWS:-1}" -ge 16 ] && tile=$TILE;; *) tile=tile_256;; esac
echo "[pumice 10:00:00.000] kernel: $tile for sm_90a: found in the cache" >&2
"""
# Finds something under the tool and network that FINDS names.
SANITIZER = """#!/bin/sh
[ "$1" = --version ] && exit
case "$*" in $FINDS) echo "========= Invalid read"; echo "========= ERROR SUMMARY: 1 error"; exit 9;; esac
while [ "${1%pumice}" = "$1" ]; do shift; done
"$@" && echo "========= ERROR SUMMARY: 0 errors"
"""


class SanitizeDevice(unittest.TestCase):
    def run_script(self, *arguments, finds="nothing", tile="tile_256", **more):
        """Exit code, what it said and the runs of Pumice."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "bin").mkdir()
            for path, text in ((folder / "bin/pumice", PUMICE), (folder / "tool", SANITIZER)):
                path.write_text(text, encoding="utf-8")
                path.chmod(0o755)
            calls = folder / "calls"
            calls.touch()
            environment = {
                **os.environ, "SANITIZER": str(folder / "tool"), "CALLS": str(calls), "FINDS": finds,
                "TILE": tile, "NETWORKS": "second", "PRECISIONS": "f16", **more,
            }  # fmt: skip
            done = subprocess.run(
                ["bash", SCRIPT, folder, *arguments],
                env=environment, capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            return done.returncode, done.stdout + done.stderr, calls.read_text().splitlines()

    def test_every_tool_sees_both_ways_of_running(self):
        code, text, calls = self.run_script("small")
        self.assertEqual(code, 0, text)
        for tool in ("memcheck", "initcheck", "synccheck", "racecheck"):
            for mode in ("eager", "graph"):
                self.assertIn(f"{tool} second-f16-{mode}-small-64: ERROR SUMMARY: 0 errors", text)
        self.assertEqual(len(calls), 4 * 2 * 2)
        self.assertTrue(calls[0].startswith("64 run second "))
        self.assertIn("--device cuda --precision f16 --voxel 1.6", calls[0])
        self.assertIn("--graph", calls[2])

    def test_whole_scans_go_through_two_tools(self):
        code, text, calls = self.run_script("real")
        self.assertEqual(code, 0, text)
        self.assertEqual(len(calls), 2 * 2)
        self.assertFalse(any("--voxel" in call for call in calls))

    def test_what_a_tool_finds_is_shown_and_is_a_failure(self):
        code, text, _ = self.run_script("small", "initcheck", finds="*initcheck*--graph*")
        self.assertEqual(code, 1)
        self.assertIn("initcheck second-f16-eager-small-64: ERROR SUMMARY: 0 errors", text)
        self.assertIn("initcheck second-f16-graph-small-64: ERROR SUMMARY: 1 error", text)
        self.assertIn("Invalid read", text)

    def test_kernels_that_the_small_scan_lacks_are_named(self):
        code, text, _ = self.run_script("kernels")
        self.assertEqual(code, 0, text)
        self.assertIn("second f16 eager: 1 kernels, 0 of them not in small", text)
        code, text, _ = self.run_script("kernels", tile="tile_128")
        self.assertEqual(code, 1)
        self.assertIn("tile_256", text)

    def test_without_a_device_it_says_so_and_counts_nothing(self):
        code, text, _ = self.run_script("kernels", FAILS="no CUDA driver")
        self.assertEqual(code, 2)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertIn("run second", text)
        self.assertIn("failed: pumice: no CUDA driver", text)

    def test_without_the_tool_it_says_so(self):
        code, text, _ = self.run_script("small", SANITIZER="/nowhere/compute-sanitizer")
        self.assertEqual(code, 2)
        self.assertIn("name it by SANITIZER", text)

    def test_another_size_prints_how_to_call_it(self):
        code, text, _ = self.run_script("large")
        self.assertEqual(code, 2)
        self.assertIn("tools/sanitize_device.sh FOLDER small|real|kernels [TOOL ...]", text)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop(1)
    unittest.main()
