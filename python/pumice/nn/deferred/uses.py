"""What became of a layer's output in earlier passes."""

from __future__ import annotations

from typing import Any

# What can be done to an output without anybody reading it.
NORM, SUM, RELU, STORE = "norm", "sum", "relu", "store"
OTHER = "other"  # all else, and one thing here and another there

# Of a result of the first, what can follow in one pass of a chain. Every result can be stored.
_FOLLOWS = {
    "convolution": (NORM,),
    NORM: (SUM, RELU),
    SUM: (RELU,),
    RELU: (SUM,),  # as what is added, a block further on
}


class Use:
    """What is done to one result: `known` is one of the names above, and None before the first time.
    `then`: what is done to what that makes; of a result that is stored, to the same again."""

    __slots__ = ("kind", "known", "then")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.known: str | None = None
        self.then: Use | None = None

    def note(self, what: str) -> Use | None:
        """`then`, or None where the result goes its own way."""
        if self.known is what:
            return self.then
        if self.known is None and (what is STORE or what in _FOLLOWS[self.kind]):
            self.known = what
            self.then = Use(self.kind if what is STORE else what)
        else:
            self.known, self.then = OTHER, None
        return self.then


class _Unseen(Use):
    """Of a result that nobody sees but layers."""

    __slots__ = ()

    def note(self, what: str) -> Use | None:
        """Nothing to learn."""
        return None


UNSEEN = _Unseen(OTHER)


class Habit:
    """What becomes of the outputs of one layer, apart for training and evaluation and with gradients and
    without. No copy of the layer takes it along."""

    __slots__ = ("codes", "uses")

    def __init__(self) -> None:
        self.uses: dict[tuple[bool, bool, str], Use] = {}
        self.codes: dict[Any, Any] = {}  # chains that begin with this layer, by what they are made of

    def of(self, training: bool, learns: bool, kind: str = "convolution") -> Use:
        """`kind`: what the layer's container does to its output before anybody sees it, a norm or a ReLU
        behind one."""
        key = (training, learns, kind)
        use = self.uses.get(key)
        if use is None:
            use = self.uses[key] = Use(kind)
        return use

    def __deepcopy__(self, memo: dict[int, Any]) -> Habit:
        return Habit()

    def __reduce__(self) -> tuple[Any, ...]:
        return Habit, ()
