"""Which release's coordinates are meant."""

from __future__ import annotations

from ... import _C

batch_first = True  # (batch, x, y, z), divided by the stride; False: (x, y, z, batch), not divided


def use_version(version: str) -> None:
    """ "2.1", or "2.0" (and "1.4") for the conventions of the releases before it."""
    global batch_first
    if version.split(".")[0] not in ("1", "2"):
        raise _C.UserError(f"version = {version!r}: there are '2.1', '2.0' and '1.4'")
    batch_first = tuple(int(part) for part in version.split(".")[:2]) >= (2, 1)


def axes() -> slice:
    """The columns of x, y, z."""
    return slice(1, 4) if batch_first else slice(0, 3)


def batch() -> int:
    """The column of the batch index."""
    return 0 if batch_first else 3
