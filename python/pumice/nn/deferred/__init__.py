"""Layers called one by one that run together, as those of a Sequential do.

Code written for other libraries calls a convolution, hands its features to a batch norm, hands those to a
ReLU, and puts them back. What such a layer makes is read by nobody else, so it need not be there: a layer
whose output went that way before returns a tensor that only says what is to be computed (`links`), norm,
sum and ReLU add to it (`operations`, `asks`), and the chain runs where somebody reads it (`running`), at the
latest when the call of the outermost module returns (`region`). Which way outputs go is learnt from earlier
passes (`uses`): in the first ones every layer computes at once, and its result notes what is done to it
(`tensors`); sparse tensors hold both kinds (`held`). An output that goes anywhere else is an ordinary tensor,
at once and ever after. Layers that hand each other the sparse tensor itself need not learn that (`layers`).
"""

from __future__ import annotations

from . import switch
from .held import read, store, take
from .layers import added, can_wait, convolved, norm_of, normalized, rectified, source_of, wait
from .links import Weight
from .tensors import Deferred, plain
from .uses import NORM, OTHER, RELU, Habit, Use

__all__ = [
    "NORM",
    "OTHER",
    "RELU",
    "Deferred",
    "Habit",
    "Use",
    "Weight",
    "added",
    "can_wait",
    "convolved",
    "norm_of",
    "normalized",
    "plain",
    "read",
    "rectified",
    "source_of",
    "store",
    "switch",
    "take",
    "wait",
]
