"""tools/sanitize_python.py with a program that stands for compute-sanitizer, and what it runs on a CPU."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from programs import surroundings

ROOT = pathlib.Path(__file__).parents[2]
TOOL = ROOT / "tools/sanitize_python.py"
if not TOOL.exists():
    pytest.skip("the tools are not here", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))

import sanitize_python  # noqa: E402

# As the tools print it.
MEMCHECK = """========= COMPUTE-SANITIZER
========= Program hit cudaErrorInvalidValue (error 1) due to "invalid argument" on CUDA API call to cudaFuncGetAttributes.
=========     Saved host backtrace up to driver entry point at error
========= Invalid __global__ read of size 4 bytes
=========     at pumice_tile(TileArguments)+0x70 in tile.h:33
=========     by thread (0,0,0) in block (1,0,0)
=========     Address 0x7f at is out of bounds
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void at::native::vectorized_elementwise_kernel<(int)4, at::native::AddFunctor<float>>(int, T2, T3)+0x2b0
=========     by thread (1,0,0) in block (1,0,0)
========= ERROR SUMMARY: 7 errors
"""
RACECHECK = """========= Error: Race reported between Write access at pumice_sort(SortArguments)+0x150 in sort.h:9
=========     and Read access at pumice_sort(SortArguments)+0x1a0 in sort.h:11 [256 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OLDER = """========= Barrier error detected. Divergent thread(s) in block
=========     at 0x1a0 in /tmp/tile.h:44:pumice_tile
=========     by thread (3,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""


def test_reports_are_counted_by_kernel() -> None:
    found = sanitize_python.reports_of(MEMCHECK)
    assert found == {
        "call of cudaFuncGetAttributes": 1, "pumice_tile": 1, sanitize_python.NOT_TOLD: 4,
        "void at::native::vectorized_elementwise_kernel<": 1,
    }  # fmt: skip
    assert sanitize_python.reports_of(RACECHECK) == {"pumice_sort": 1}
    assert sanitize_python.reports_of(OLDER) == {"pumice_tile": 1}
    assert sanitize_python.reports_of("========= ERROR SUMMARY: 0 errors\n") == {}
    assert sanitize_python.reports_of("Segmentation fault\n") is None
    reason = "reads of a room that nobody uses"
    counted, left_out = sanitize_python.parted(found, [sanitize_python.excepted(f"at::native={reason}"), sanitize_python.excepted("told=never")])
    assert left_out == {reason: 1} and counted[sanitize_python.NOT_TOLD] == 4 and len(counted) == 3


SANITIZER = """#!/bin/sh
[ "$2" = {tool} ] && printf '%s' '{log}' || echo "========= ERROR SUMMARY: 0 errors"
echo "$PUMICE_KERNEL_ROWS $*" >>{calls}
sleep {sleep}
exit {code}
"""
PYTHON = """#!/bin/sh
echo "plain $PUMICE_KERNEL_ROWS $*" >>{calls}
echo "[pumice 10:00:00.000] kernel: tile_{tile} for sm_90a: found in the cache" >&2
exit {fails}
"""
CASE = "minkunet42/training/autocast/graph"


def run(folder: pathlib.Path, *words: str, tool: str = "none", log: str = "", code: int = 0, tile: str = "1", fails: int = 0, sleep: int = 0) -> tuple[int, str, list[str]]:
    calls = folder / "calls"
    calls.write_text("")
    for name, text in (("sanitizer", SANITIZER), ("python", PYTHON)):
        (folder / name).write_text(text.format(tool=tool, log=log, code=code, calls=calls, tile=tile, fails=fails, sleep=sleep))
        (folder / name).chmod(0o755)
    command = [sys.executable, str(TOOL), *words, "--case", CASE, "--logs", str(folder / "logs"), "--sanitizer", str(folder / "sanitizer")]
    done = subprocess.run([*command, "--python", str(folder / "python")], env=surroundings(), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr, calls.read_text().splitlines()


def test_every_tool_sees_a_small_street_with_every_factor(tmp_path: pathlib.Path) -> None:
    status, said, calls = run(tmp_path, "small")
    assert status == 0, said
    assert [line.split(": ")[0] for line in said.splitlines()] == [
        f"{tool} {CASE}/small/{factor}" for tool in ("memcheck", "initcheck", "synccheck", "racecheck") for factor in (32, 96)
    ]
    assert "0 reports" in said and len(calls) == 2 + 4 * 2  # kernels are compiled once for each factor
    assert calls[0].startswith("plain 32 ") and calls[0].endswith("sanitized_runs.py minkunet42 training autocast graph small")
    assert calls[1].startswith("32 --tool memcheck ")
    status, said, calls = run(tmp_path, "real")
    assert status == 0 and [line.split()[0] for line in said.splitlines()] == ["memcheck", "initcheck"]
    assert all(" real" in call and call.removeprefix("plain ").startswith("1 ") for call in calls)


def test_what_is_reported_is_shown_and_is_a_failure(tmp_path: pathlib.Path) -> None:
    status, said, _ = run(tmp_path, "real", tool="initcheck", log=OLDER)
    assert status == 1 and f"memcheck {CASE}/real: 0 reports" in said and f"initcheck {CASE}/real: 1 reports" in said and "1 in pumice_tile" in said
    status, said, _ = run(tmp_path, "real", "initcheck", "--except", "^pumice_tile$=it is known", tool="initcheck", log=OLDER)
    assert status == 0 and "0 reports" in said and "not counted: 1, it is known" in said
    assert (tmp_path / "logs" / "initcheck-minkunet42-training-autocast-graph-real.log").read_text().startswith("========= Barrier")
    status, said, _ = run(tmp_path, "real", "memcheck", tool="memcheck", log="killed", code=137)
    assert status == 1 and "exit status 137, no summary: killed" in said
    status, said, _ = run(tmp_path, "real", "memcheck", "--limit", "1", sleep=60)
    assert status == 1 and f"memcheck {CASE}/real: not done after 1 s" in said
    status, said, _ = run(tmp_path, "real", "memcheck", code=9)
    assert status == 1 and "exit status 9, no report" in said


def test_kernels_that_a_small_street_lacks_are_named(tmp_path: pathlib.Path) -> None:
    status, said, _ = run(tmp_path, "kernels")
    assert status == 0 and f"{CASE}: 1 kernels, 0 of them not in small" in said
    status, said, _ = run(tmp_path, "kernels", tile="$6")  # small or real, as the program is told
    assert status == 1 and "1 of them not in small" in said and "  tile_real" in said


def test_what_cannot_be_run_is_said(tmp_path: pathlib.Path) -> None:
    status, said, _ = run(tmp_path, "small", fails=1)
    assert status == 2 and f"{CASE} small fails without a tool: [pumice" in said
    status, said, _ = run(tmp_path, "small", "leakcheck")
    assert status == 2 and "leakcheck: there are memcheck" in said
    status, said, _ = run(tmp_path, "small", "--except", "kernel")
    assert status == 2 and "with a reason" in said
    done = subprocess.run([sys.executable, str(TOOL), "small", "--sanitizer", str(tmp_path / "absent")], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "name it by SANITIZER" in done.stderr


@pytest.mark.parametrize("case", [case for case in sanitize_python.CASES if "f32" not in case or "graphs" in case])
def test_all_of_it_runs_on_a_cpu(case: str) -> None:
    command = [sys.executable, str(sanitize_python.PROGRAM), *case.split("/"), "small", "--device", "cpu"]
    done = subprocess.run(command, env=surroundings(PUMICE_PLANS="off", OMP_NUM_THREADS="1"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = int(done.stdout.split(": ")[1].split()[0].replace(",", ""))
    assert 1000 < rows <= 2000
