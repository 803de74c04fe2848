"""Keywords of other libraries in calls of classes that have none of them: what says the same as leaving them out is left
out, and of the rest is said what to write instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _C

_Init = TypeVar("_Init", bound=Callable[..., None])

# By the name of a keyword: the values that say what is the case in any case, and what to write instead of others.
Keywords = dict[str, tuple[tuple[Any, ...], str]]


def understands(keywords: Keywords) -> Callable[[_Init], _Init]:
    """A decorator for `__init__`: `keywords` that it has not itself are understood. UserError names one that has another
    value; a keyword that nobody knows stays Python's TypeError."""

    def decorated(init: _Init) -> _Init:
        foreign = keywords.keys() - inspect.signature(init).parameters.keys()

        @functools.wraps(init)
        def understanding(self: Any, *arguments: Any, **given: Any) -> None:
            for name in foreign & given.keys():
                value = given.pop(name)
                expect_default(type(self).__name__, name, value, *keywords[name])
            init(self, *arguments, **given)

        return cast(_Init, understanding)

    return decorated


def expect_default(owner: str, name: str, value: Any, defaults: tuple[Any, ...], remedy: str) -> None:
    """Raises UserError unless `value` is one of the `defaults`, which say what is the case in any case."""
    if isinstance(value, (bool, int, float, str, type(None))):
        if any(type(value) is type(default) and value == default for default in defaults):
            return
        raise _C.UserError(f"{name} = {value!r} is not there for {owner}: {remedy}")
    raise _C.UserError(f"{name} is not there for {owner}: {remedy}")
