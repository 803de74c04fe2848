"""Switches of TorchSparse's interface, for the length of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pumice._checks as checks
from pumice.compat.torchsparse import conventions
from pumice.compat.torchsparse.nn.functional import conv_config

_SWITCHES = ("batch_first", "chosen", "release", "border", "allow_negative")


@contextmanager
def switches(release: str | None = None, border: bool = False) -> Iterator[None]:
    """As in a process where nothing was said, warned of or chosen before, but this."""
    before = {name: getattr(conventions, name) for name in _SWITCHES}
    warned, config = set(checks._warned), dict(conv_config.get_default_conv_config())
    checks._warned.clear()
    conventions.batch_first, conventions.chosen, conventions.allow_negative = True, False, False
    conventions.release = (2, 1)
    if release is not None:
        conventions.use_version(release)
    conventions.use_border(border)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(conventions, name, value)
        checks._warned.update(warned)
        conv_config.clear_global_conv_config()
        conv_config.get_default_conv_config().update(config)
