"""`python -m pumice`: what works here and what is missing, in words; checkpoints of other libraries."""

from __future__ import annotations

import importlib.util
import sys

from . import __version__, doctor

_USAGE = "usage: python -m pumice doctor | convert CHECKPOINT --from LIBRARY ... | version"


def main(arguments: list[str]) -> int:
    if arguments == ["doctor"]:
        return doctor.main()
    if arguments in (["version"], ["--version"]):
        print(__version__)
        return 0
    if arguments[:1] == ["convert"]:
        if importlib.util.find_spec("torch") is None:
            print("pumice convert needs PyTorch: pip install torch", file=sys.stderr)
            return 1
        from .convert import command

        return command.main(arguments[1:])
    print(_USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
