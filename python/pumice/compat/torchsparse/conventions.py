"""Which release is meant, in what order its arguments come, and where its grids end."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ... import _C
from ..._checks import warn_once

# Of programs that nobody changes; `use_version` and `use_border` say it in code.
_VERSION, _BORDER = "PUMICE_TORCHSPARSE_VERSION", "PUMICE_TORCHSPARSE_BORDER"

batch_first = True  # (batch, x, y, z), divided by the stride; False: (x, y, z, batch), not divided
chosen = False  # whether use_version was called
release = (2, 1)  # whose conventions these are, as (major, minor)
border = False  # whether a grid without spatial_range ends at its last site; before 2.1, begins at its first
allow_negative = False  # whether that border leaves negative cells

Function = TypeVar("Function", bound=Callable[..., Any])


def use_version(version: str) -> None:
    """ "2.1", or "2.0" (and "1.4") for the conventions of the releases before it: coordinates, the order of
    arguments, the shape of a 1x1x1 kernel with a stride."""
    global batch_first, chosen, release
    known = {"2.1": (2, 1), "2.0": (2, 0), "1.4": (1, 4)}
    given = ".".join(version.split(".")[:2]) if isinstance(version, str) else None
    if given not in known:
        text = ", as text" if isinstance(version, (int, float)) else ""
        raise _C.UserError(f"version = {version!r}: give '2.1', '2.0' or '1.4'{text}")
    release = known[given]
    batch_first = release >= (2, 1)
    chosen = True


def use_border(on: bool = True) -> None:
    """Whether a strided convolution over a tensor without `spatial_range` leaves out the cells that TorchSparse
    leaves out: 2.1 output cells that reach past the largest coordinate of the batch, and negative ones; earlier
    releases those below the lowest coordinate of the batch, where kernel and stride differ."""
    global border
    border = on


def axes() -> slice:
    """The columns of x, y, z."""
    return slice(1, 4) if batch_first else slice(0, 3)


def batch() -> int:
    """The column of the batch index."""
    return 0 if batch_first else 3


def by_release(
    before: Sequence[str], meaning: Callable[[Mapping[str, Any], bool], object] | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Function], Function]:
    """For a function whose arguments are those of 2.1: takes them in the order `before` where an earlier
    release is meant; `renamed` has names of that release that 2.1 changed. Where none was chosen, a call whose
    `meaning` (of the arguments by name, and whether they are of an earlier release) is another in the earlier
    order gives a warning, once."""

    def decorate(function: Function) -> Function:
        now = list(inspect.signature(function).parameters)
        shared = next(i for i, (a, b) in enumerate(zip(now, before)) if a != renamed.get(b, b))
        name = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            if not batch_first:
                given = _earlier(name, before, args, named)
                return function(**{renamed.get(key, key): value for key, value in given.items()})
            if not chosen and meaning is not None and len(args) > shared:
                _compare(name, now, before, meaning, args, named)
            return function(*args, **named)

        return cast(Function, call)

    return decorate


def _earlier(
    name: str, before: Sequence[str], args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    given = dict(zip(before, args))
    for argument in named:
        if argument not in before:
            raise _C.UserError(
                f"{name}: {argument} is no argument before TorchSparse 2.1: leave it out, or call "
                "use_version('2.1')"
            )
        if argument in given:
            raise TypeError(f"{name}() got multiple values for argument {argument!r}")
    if len(args) > len(before):
        raise TypeError(f"{name}() takes {len(before)} arguments before 2.1, {len(args)} were given")
    return {**given, **named}


def _compare(
    name: str,
    now: Sequence[str],
    before: Sequence[str],
    meaning: Callable[[Mapping[str, Any], bool], object],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> None:
    if len(args) > min(len(now), len(before)) or not set(named) <= set(before):
        return  # one of the releases refuses the call, so that the other is meant
    readings = [dict(zip(names, args)) for names in (now, before)]
    if any(set(reading) & set(named) for reading in readings):
        return
    if meaning({**readings[0], **named}, False) == meaning({**readings[1], **named}, True):
        return
    values = ", ".join(f"{key}={value!r}" for key, value in list(readings[0].items())[4:])
    other = ", ".join(f"{key}={value!r}" for key, value in list(readings[1].items())[4:])
    warn_once(
        f"torchsparse order of {name}",
        f"{name} is read as TorchSparse 2.1 reads it, {values}; releases before it read {other}: call "
        "torchsparse.use_version('2.1') or ('2.0'), or name these arguments",
    )


if os.environ.get(_VERSION):
    use_version(os.environ[_VERSION])
use_border(os.environ.get(_BORDER, "") not in ("", "0"))
