"""The way to a GPU and back, where there is none."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize(
    "script, last",
    [
        ("emulated_device.py", "all is given back"),
        ("emulated_plan.py", "refused"),
        ("emulated_rise.py", "agrees"),
        ("emulated_memory.py", "all is given back"),
        ("emulated_passes.py", "copies start anew"),
    ],
)
def test_an_emulated_device_gives_the_same_answers(script: str, last: str) -> None:
    folder = pathlib.Path(
        os.environ.get("PUMICE_FAKE_DEVICE", HERE.parent.parent / "build/release/bin")
    )
    driver = folder / "libpumice_fake_driver.so"
    compiler = folder / "libpumice_fake_compiler.so"
    if not (driver.exists() and compiler.exists()):
        pytest.skip(f"no emulated device in {folder}: build the C++ tests, or name their folder in "
                    "PUMICE_FAKE_DEVICE")
    environment = os.environ | {
        "PUMICE_CUDA_DRIVER": str(driver),
        "PUMICE_NVRTC": str(compiler),
        "PUMICE_CACHE": str(folder.parent / "kernel_cache"),   # where the C++ tests left most of the kernels
    }
    done = subprocess.run(
        [sys.executable, str(HERE / script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert last in done.stdout
