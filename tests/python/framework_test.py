"""What importing Pumice beside PyTorch does to a process, and what it leaves alone."""

from __future__ import annotations

import importlib.util
import os
import pathlib

import pytest
import torch
from programs import run

IMPORT = "import os, torch, pumice\nassert pumice.nn and pumice.Coordinates\n"


def test_the_environment_stays_as_it_was() -> None:
    done = run(
        "import os, subprocess, sys\n"
        "before = {name for name in os.environ if name.startswith('PUMICE')}\n"
        f"{IMPORT}"
        "assert before == {name for name in os.environ if name.startswith('PUMICE')}\n"
        # What a child is given by the system, which os.environ need not show.
        "child = subprocess.run(['env'], capture_output=True, text=True, check=True).stdout\n"
        "names = {line.partition('=')[0] for line in child.splitlines()}\n"
        "assert before == {name for name in names if name.startswith('PUMICE')}, names\n"
    )
    assert done.returncode == 0, done.stderr


def wheels_compiler() -> pathlib.Path:
    spec = importlib.util.find_spec("nvidia")
    major = str(torch.version.cuda).split(".")[0]
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for path in sorted(pathlib.Path(folder).glob(f"*/lib/libnvrtc.so.{major}")):
            return path
    pytest.skip("PyTorch's wheels bring no NVRTC here")


@pytest.mark.skipif("PUMICE_NVRTC" in os.environ, reason="PUMICE_NVRTC names another compiler")
def test_the_compiler_is_that_of_pytorchs_wheels() -> None:
    done = run(f"{IMPORT}print(pumice._C.kernel_compiler()['path'])")
    assert done.returncode == 0, done.stderr
    assert pathlib.Path(done.stdout.strip()).samefile(wheels_compiler())


def test_a_compiler_that_is_named_goes_first() -> None:
    done = run(f"{IMPORT}print(pumice._C.kernel_compiler()['reason'])", PUMICE_NVRTC="/nowhere/nvrtc.so")
    assert done.returncode == 0, done.stderr
    assert "/nowhere/nvrtc.so" in done.stdout
