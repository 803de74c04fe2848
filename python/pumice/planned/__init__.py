"""Runs whole networks as CUDA graphs, with other voxels in every call.

    fast = pumice.compile(model.eval())
    y = fast(coords, features)
    step = pumice.compile_step(model, loss, optimizer)
    value = step(coords, features, labels)

  - The rows of a call choose a bucket (`sizes`): static memory with room for so many voxels.
  - The first two calls of a bucket run eagerly, and what they made is learned: which sites and maps follow from the
    input, how many rows each has, which tiles layers ask for. The third call records sites, maps and layers as one
    graph (`bucket`), which all later ones replay.
  - Steps (`compile_steps`, `step`, `step_bucket`) have the loss, the pass back and the update in the graph as well; `training` does them
    as a loop written by hand would, `guarded` so that a number on the device keeps them from changing anything.
  - Points become voxels inside the graph (`points`, `point_bucket`); models on graphs are given nodes and edges, whose
    numbers change too (`graph_call`, `graph_bucket`, in steps `graph_step_bucket`).
  - Several processes train together (`joint_step`, `data_parallel`): their collectives come between two graphs.
  - All that a GPU is asked for is in `recorder`.
  - What a call takes and gives is described by `scans` and `outputs`; that the model is still the one that was
    recorded is looked at in `state`; modules that mix rows, which a graph cannot have, are found by `rows`.
"""

from __future__ import annotations

from .compiled import CompiledModel, compile
from .compile_steps import compile_step
from .outputs import CapacityTensor
from .step import CompiledStep

__all__ = ["CapacityTensor", "CompiledModel", "CompiledStep", "compile", "compile_step"]
