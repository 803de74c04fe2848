"""Programs in processes of their own, as those written for another library and run unmodified."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import torch.distributed

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIMS = ROOT / "python/shims"


def run(
    program: str | pathlib.Path, *paths: pathlib.Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A text or a file. It finds what this process finds, and before that what lies in `paths`."""
    command = [str(program)] if isinstance(program, pathlib.Path) else ["-c", program]
    return subprocess.run(
        [sys.executable, *command],
        env=surroundings(*paths, **environment),
        capture_output=True,
        text=True,
    )


def surroundings(*paths: pathlib.Path, **environment: str) -> dict[str, str]:
    """The environment of a process that finds what this one finds, and before that what lies in `paths`."""
    search = [str(path) for path in paths] + [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search), **environment}


def leave_group() -> None:
    """Ends a process of several at once, when all have come here: a thread of PyTorch's for gloo that still holds a tensor of
    the last sum aborts the process where Python has ended (9 of 80 of them did)."""
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


def shim(library: str) -> pathlib.Path:
    """The folder to search; skips where the sources are not there."""
    if not SHIMS.is_dir():
        pytest.skip("python/shims is not there: these are not the sources")
    return SHIMS / library


def run_unmodified(program: str, library: str, way: str) -> str:
    """What a program for `library` prints, where Pumice stands in for it by "install" or a "shim"."""
    if way == "install":
        done = run(f"import pumice.compat\npumice.compat.install({library!r})\n{program}")
    else:
        done = run(program, shim(library))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def check_refusal(library: str) -> None:
    """install() of `library` refuses where another library of that name is there, and changes nothing."""
    done = run(
        f"""
import sys, types
other = sys.modules[{library!r}] = types.ModuleType({library!r})
import pumice.compat
try:
    pumice.compat.install({library!r})
except pumice.UserError as error:
    assert str(error).startswith("{library} is imported already, from memory"), error
else:
    raise AssertionError("installed over another")
assert sys.modules[{library!r}] is other
assert [name for name in sys.modules if name.split(".")[0] == {library!r}] == [{library!r}]
"""
    )
    assert done.returncode == 0, done.stderr
