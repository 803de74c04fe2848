"""Runs the command `pumice`, also as `python -m pumice`: `doctor` and `convert` are written in Python, all other
commands are those of the C++ program, which is installed with the package."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys

from . import UserError, __version__, doctor
from ._program import PROGRAM, program_environment

_OWN = """\
  convert                     Checkpoints of spconv, TorchSparse, MinkowskiEngine and WarpConvNet to
                              safetensors and to each other
"""


def main(arguments: list[str]) -> int:
    """The exit code: 0 done, 1 an input is at fault, 2 the command line, 3 Pumice."""
    if arguments == ["doctor"]:
        try:
            return doctor.main()
        except UserError as error:  # of an environment variable that says what it may not
            print(f"pumice: {error}", file=sys.stderr)
            return 1
    if arguments in (["version"], ["--version"]):
        print("pumice", __version__)
        return 0
    if arguments[:1] == ["convert"]:
        if importlib.util.find_spec("torch") is None:
            print("pumice: convert needs PyTorch: pip install torch", file=sys.stderr)
            return 1
        from .convert import command

        return command.main(arguments[1:])
    if not PROGRAM.exists():
        print(
            f"pumice: there is no {PROGRAM}, which has every command but convert and doctor: install "
            "the package anew",
            file=sys.stderr,
        )
        return 1
    if arguments[:1] in (["-h"], ["--help"]):
        code = subprocess.run([PROGRAM, "--help"], check=False).returncode
        print(_OWN, end="")
        return code
    return _run_program(arguments)


def _run_program(arguments: list[str]) -> int:
    environment = program_environment()
    words = [str(PROGRAM), *arguments]
    if os.name == "nt":   # has no exec that keeps the process
        return subprocess.run(words, env=environment, check=False).returncode
    sys.stdout.flush()
    try:
        os.execve(words[0], words, environment)
    except OSError as error:
        print(f"pumice: {PROGRAM} does not start: {error.strerror}", file=sys.stderr)
        return 1


def command() -> int:
    # Python ignores these, and programs that it becomes would: a closed pipe is no full disk.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        return main(sys.argv[1:])
    except KeyboardInterrupt:
        print("pumice: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(command())
