"""Lets layers that are called one by one run together, as those of a Sequential do.

Code written for other libraries calls a convolution, gives its features to a batch norm, gives those to a ReLU,
and puts the result back into a sparse tensor. Nothing else reads the results in between, so they need not be
computed one by one:

  - A layer whose output was used in this way before returns a tensor that only describes what is to be computed
    (`tensors`, `links`). The norm, the sum and the ReLU add to the description (`operations`, `asks`).
  - The whole chain is computed when code reads the tensor (`running`), at the latest when the call of the outermost
    module returns (`region`).
  - How outputs are used is learnt in the first passes (`uses`): every layer computes at once there, and its result
    records what is done to it. Sparse tensors hold both kinds of tensors (`held`).
  - An output that is used in another way is an ordinary tensor from then on.
  - Layers that take the sparse tensor itself need not learn anything (`layers`).
  - Channels that are joined, and linear layers, are described too (`takes`).
"""

from __future__ import annotations

from . import recorder, switch
from .held import read, store, take
from .layers import added, can_wait, convolved, norm_of, normalized, rectified, source_of, wait
from .region import is_own_hook
from .consumers import joined
from .tensors import Deferred, plain
from .uses import NORM, OTHER, RELU, Habit, Use

__all__ = [
    "NORM",
    "OTHER",
    "RELU",
    "Deferred",
    "Habit",
    "Use",
    "added",
    "can_wait",
    "convolved",
    "is_own_hook",
    "joined",
    "norm_of",
    "normalized",
    "plain",
    "read",
    "recorder",
    "rectified",
    "source_of",
    "store",
    "switch",
    "take",
    "wait",
]
