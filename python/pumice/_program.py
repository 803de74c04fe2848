"""The C++ program `pumice`, which is installed with the package."""

from __future__ import annotations

import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).parent / "bin" / ("pumice.exe" if os.name == "nt" else "pumice")


def program_environment() -> dict[str, str]:
    """The variables that it starts with: it finds NVRTC and cuBLAS of this environment, activated or not."""
    environment = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        environment["VIRTUAL_ENV"] = sys.prefix
    return environment
