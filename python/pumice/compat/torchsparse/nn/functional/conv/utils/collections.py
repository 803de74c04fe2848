"""A dictionary whose keys are attributes too."""

from __future__ import annotations

from typing import Any


class AttributeDict(dict):
    """AttributeDict(a=1).a is 1; a missing one is an AttributeError."""

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

    def copy(self) -> AttributeDict:
        return AttributeDict(self)

    def to_dict(self) -> dict[Any, Any]:
        return dict(self)


attributedict = attrdict = AttributeDict

__all__ = ["AttributeDict", "attrdict", "attributedict"]
