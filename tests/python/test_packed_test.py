"""tools/test_packed.sh with scripts that stand for test programs."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TOOL = ROOT / "tools/test_packed.sh"
if not TOOL.exists():
    pytest.skip("the tools are not here", allow_module_level=True)

# Of GoogleTest, in a process that has a share of the tests.
ENDS = """[==========] 3 tests from 1 test suite ran. (12 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] SortGpu.on_two_devices
"""
FAILS = """/pumice/sort_test.cpp:12: Failure
Expected equality of these values:
[  FAILED  ] SortGpu.keeps_the_order (3 ms)
[==========] 2 tests from 1 test suite ran. (12 ms total)
[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] SortGpu.keeps_the_order
"""
NONE = """[==========] 0 tests from 0 test suites ran. (0 ms total)
[  PASSED  ] 0 tests.
"""


def run(folder: pathlib.Path, programs: dict[str, str], *stages: str, **more: str) -> subprocess.CompletedProcess[str]:
    """With two processes at a time, so that each program has two shares."""
    (folder / "bin").mkdir(exist_ok=True)
    for stage, script in programs.items():
        program = folder / "bin" / f"pumice_{stage}_test"
        program.write_text(f"#!/usr/bin/env bash\n[[ $* == '--gtest_filter=*Gpu.*' ]] || exit 9\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    environment = {**os.environ, "JOBS": "2", **more}
    return subprocess.run([str(TOOL), str(folder), *stages], env=environment, capture_output=True, text=True, timeout=60)


def says(text: str) -> str:
    return f"cat <<'END'\n{text}END"


def test_shares_are_added_up(tmp_path: pathlib.Path) -> None:
    of_second = f"if [[ $GTEST_SHARD_INDEX == 1 && $GTEST_TOTAL_SHARDS == 2 ]]; then\n{says(ENDS)}\nelse\n{says(NONE)}\nfi"
    done = run(tmp_path, {"coords": says(ENDS), "jit": of_second, "core": says(NONE)})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["coords: 4 passed, 2 skipped", "jit: 2 passed, 1 skipped"]
    assert lines[2].startswith("6 passed in ") and len(lines) == 3


def test_stages_that_are_named_run_alone(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, {"coords": "exit 1", "jit": says(ENDS)}, "jit")
    assert done.returncode == 0 and done.stdout.startswith("jit: 4 passed, 2 skipped\n")


def test_a_failed_test_is_named(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, {"coords": f"{says(FAILS)}\nexit 1", "jit": says(ENDS)})
    assert done.returncode == 1
    assert "coords: 2 passed, 0 skipped" in done.stdout and "jit: 4 passed, 2 skipped" in done.stdout
    assert "sort_test.cpp:12: Failure" in done.stdout and "SortGpu.keeps_the_order" in done.stdout


@pytest.mark.parametrize(
    ("script", "status", "more"),
    [
        ("echo '[ RUN      ] SortGpu.keeps_the_order'; kill -SEGV $$", 139, {}),
        ("echo '[ RUN      ] SortGpu.keeps_the_order'; exec sleep 30", 124, {"LIMIT_S": "1"}),
    ],
    ids=["ends_early", "is_stopped"],
)
def test_a_process_without_an_end(tmp_path: pathlib.Path, script: str, status: int, more: dict[str, str]) -> None:
    done = run(tmp_path, {"coords": script, "jit": says(ENDS)}, **more)
    assert done.returncode == 1
    assert f"coords, part 1: pumice: exit code {status}" in done.stdout
    assert "SortGpu.keeps_the_order" in done.stdout  # where it was
    assert "4 passed in" in done.stdout


def test_where_nothing_runs(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, {"coords": says(NONE)})
    assert done.returncode == 1 and "is there a CUDA driver?" in done.stderr
    missing = tmp_path / "other"
    missing.mkdir()
    done = subprocess.run([str(TOOL), str(missing)], capture_output=True, text=True)
    assert done.returncode == 1 and f"{missing} has no bin" in done.stderr
