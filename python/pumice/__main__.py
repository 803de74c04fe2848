"""`python -m pumice doctor`: what works here, and what is missing, in words."""

from __future__ import annotations

import sys

from . import __version__, doctor

_USAGE = "usage: python -m pumice doctor | version"


def main(arguments: list[str]) -> int:
    if arguments == ["doctor"]:
        return doctor.main()
    if arguments in (["version"], ["--version"]):
        print(__version__)
        return 0
    print(_USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
