"""Words what to pass for an argument: an option where the command `pumice convert` runs, else Python's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_OPTIONS = {
    "keep": "--keep", "drop": "--drop", "strided": "--strided-pointwise", "rename": "--rename",
    "kernel_size": "--kernel-size", "entry": "--entry", "source": "--from", "dimension": "--dimension",
}  # fmt: skip
_ARGUMENTS = ("entry", "source")  # which are no choices

_of_command: ContextVar[bool] = ContextVar("_of_command", default=False)


@contextmanager
def for_command() -> Iterator[None]:
    """Within it errors name the command's options."""
    token = _of_command.set(True)
    try:
        yield
    finally:
        _of_command.reset(token)


def named(name: str) -> str:
    """"--rename", or "Choices.rename": what an argument is called."""
    if _of_command.get():
        return _OPTIONS[name]
    return name if name in _ARGUMENTS else f"Choices.{name}"


def passed(name: str, value: Any) -> str:
    """"--keep a.anchors", or "Choices(keep=['a.anchors'])": how an argument is given one `value`. That of
    "kernel_size" and "rename" is a pair."""
    if _of_command.get():
        text = f"{value[0]}={listed(value[1])}" if isinstance(value, tuple) else value
        return f"{_OPTIONS[name]} {text}"
    if name in _ARGUMENTS:
        return f"{name}={value!r}"
    held = {value[0]: list(value[1])} if name == "kernel_size" else [value]
    return f"Choices({name}={held!r})"


def listed(numbers: str | Sequence[int]) -> str:
    """"1,3,3" of several numbers; a text as it is."""
    return numbers if isinstance(numbers, str) else ",".join(map(str, numbers))
