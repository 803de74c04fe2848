"""A dictionary whose keys are attributes too."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import Any

_RESERVED = "__"


class AttributeDict(dict):
    """AttributeDict({"a": {"b": 1}}).a.b is 1; a missing one is an AttributeError. Dictionaries in it become
    such ones too. Keys that begin with two underscores are left out of what it is made of."""

    def __init__(self, entries: Any = ()) -> None:
        super().__init__()
        self.update(entries or ())

    def update(self, entries: Any = (), *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        for key, value in builtins.dict(_unreserved(entries), *args, **kwargs).items():
            self[key] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        plain = isinstance(value, builtins.dict) and not isinstance(value, AttributeDict)
        super().__setitem__(key, AttributeDict(value) if plain else value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: Any, value: Any = None) -> Any:
        """`value` where there is no such key."""
        return super().pop(key, value)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}, there are {', '.join(map(str, self))}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}") from None

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *map(str, self)]

    def copy(self) -> AttributeDict:
        return type(self)(self)

    def iterkeys(self) -> Iterator[Any]:
        return iter(self.keys())

    def itervalues(self) -> Iterator[Any]:
        return iter(self.values())

    def iteritems(self) -> Iterator[tuple[Any, Any]]:
        return iter(self.items())

    def to_dict(self) -> builtins.dict[Any, Any]:
        """A plain dictionary, with plain ones in it."""
        return AttributeDict.dict(self)

    @classmethod
    def fromkeys(cls, keys: Iterable[Any], value: Any = None) -> AttributeDict:
        return cls(builtins.dict.fromkeys(keys, value))

    @classmethod
    def dict(cls, _dict: Any = ()) -> Any:
        """Of any dictionary a plain one, in which AttributeDicts are plain ones too; None of None."""
        if _dict is None:
            return None
        return {
            key: AttributeDict.dict(value) if isinstance(value, AttributeDict) else value
            for key, value in builtins.dict(_dict).items()
        }


def _unreserved(entries: Any) -> Any:
    if not isinstance(entries, dict):
        return entries
    return {key: value for key, value in entries.items() if not str(key).startswith(_RESERVED)}


attributedict = attrdict = AttributeDict

__all__ = ["AttributeDict", "attrdict", "attributedict"]
