"""Runs whole networks as CUDA graphs, with other voxels in every call.

    fast = pumice.compile(model.eval())
    y = fast(coords, features)

  - The rows of a call choose a bucket (`sizes`): static memory with room for so many voxels.
  - The first two calls of a bucket run eagerly, and what they made is learned: which sites and maps follow from the
    input, how many rows each has, which tiles layers ask for. The third call records sites, maps and layers as one
    graph (`bucket`), which all later ones replay.
  - All that a GPU is asked for is in `recorder`.
  - What a call takes and gives is described by `scans` and `outputs`; that the model is still the one that was
    recorded is looked at in `state`; modules that mix rows, which a graph cannot have, are found by `rows`.
"""

from __future__ import annotations

from .compiled import CompiledModel, compile
from .outputs import CapacityTensor

__all__ = ["CapacityTensor", "CompiledModel", "compile"]
