"""Remembers what was done to a layer's output in earlier passes."""

from __future__ import annotations

from typing import Any

# What can be done to an output without reading its numbers.
NORM, SUM, RELU, STORE = "norm", "sum", "relu", "store"
OTHER = "other"  # anything else, or different things in different passes

# What can follow each result in one pass of a chain. Every result can be stored in a sparse tensor.
_FOLLOWS = {
    "convolution": (NORM,),
    NORM: (SUM, RELU),
    SUM: (RELU,),
    RELU: (SUM,),  # it is what a later block adds
}


class Use:
    """What is done to one result. `known`: one of the names above, None before the first time. `then`: the `Use` of
    the result of that; after STORE, of the same result again."""

    __slots__ = ("kind", "known", "then")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.known: str | None = None
        self.then: Use | None = None

    def note(self, what: str) -> Use | None:
        """Records that `what` was done; returns `then`, or None where that is not followed any further."""
        if self.known is what:
            return self.then
        if self.known is None and (what is STORE or what in _FOLLOWS[self.kind]):
            self.known = what
            self.then = Use(self.kind if what is STORE else what)
        else:
            self.known, self.then = OTHER, None
        return self.then


class _Unseen(Use):
    """The use of a result that only layers see."""

    __slots__ = ()

    def note(self, what: str) -> Use | None:
        """Nothing to learn."""
        return None


UNSEEN = _Unseen(OTHER)


class Habit:
    """The uses of the outputs of one layer: separate ones for training and evaluation, and with and without gradients.
    A copy of the layer starts without them."""

    __slots__ = ("codes", "uses")

    def __init__(self) -> None:
        self.uses: dict[tuple[bool, bool, str], Use] = {}
        self.codes: dict[Any, Any] = {}  # chains that begin with this layer, by what they are made of

    def of(self, training: bool, learns: bool, kind: str = "convolution") -> Use:
        """The use of an output. `kind`: what the layer's container did last before the user sees it: a norm, or a
        ReLU after one."""
        key = (training, learns, kind)
        use = self.uses.get(key)
        if use is None:
            use = self.uses[key] = Use(kind)
        return use

    def __deepcopy__(self, memo: dict[int, Any]) -> Habit:
        return Habit()

    def __reduce__(self) -> tuple[Any, ...]:
        return Habit, ()
