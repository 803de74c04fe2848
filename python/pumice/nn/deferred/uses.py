"""Remembers what was done to a layer's output in earlier passes."""

from __future__ import annotations

from ... import _C

# What can be done to an output without reading its numbers.
NORM, SUM, RELU, STORE = "norm", "sum", "relu", "store"
JOIN = "join"  # with another one, channels side by side
PRODUCT = "product"  # with the weight of a linear layer
TAKE = "take"  # what `Use.known` says of a join, a product, and a sum onto another one: several may follow each other
OTHER = "other"  # anything else, or different things in different passes

# What is done to one result. `known`: one of the names above, None before the first time. `then`: the `Use` of the
# result of that; after STORE, of the same result again. `joined`: the `Use` of its join with another one.
Use = _C.Use

# The uses of the outputs of one layer: separate ones for training and evaluation, and with and without gradients. A
# copy of the layer starts without them. `codes`: chains that begin with this layer, by what they are made of.
Habit = _C.Habit

UNSEEN = Use(OTHER, True)  # of a result that only layers see: nothing to learn
