"""Defines `compile_step`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..voxels import Voxelizer
from .calls import Options
from .joint_step import joint_step
from .state import check_hooks
from .step import CompiledStep
from .training import Training


def compile_step(
    model: torch.nn.Module,
    loss: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    scaler: torch.amp.GradScaler | None = None,
    clip_norm: float | None = None,
    max_voxels: int | None = None,
    buckets: float = 1.25,
    max_bytes: int | None = None,
    fallback: str = "raise",
    eager: bool = False,
    input: Callable[[Any], Any] | None = None,
    voxelize: Voxelizer | None = None,
) -> CompiledStep:
    """Makes a function that trains `model` by one step, as one CUDA graph, with other voxels, or nodes and edges, in every
    call: sites and kernel maps, forward, loss, backward, gradient scaling, clipping and the optimiser.

    The rows of a call choose a bucket, as in `compile`; its first two steps run eagerly and later ones replay a graph,
    which the third records. On the CPU every step runs eagerly. A step drops gradients that were there before, and its own
    afterwards: zero_grad() is not needed, and gradients are not added up over steps.

    Args:
        model: a module, of layers of `pumice.nn` or `pumice.compat`, of torch.nn's linear layers, batch and layer norms and
            PReLU, which are told how many rows are in use, and of others that take each row for itself and have no
            parameters; or one in a DistributedDataParallel, whose gradients are the means over its processes, and whose
            buffers those of the first where it broadcasts them. All processes call the step equally often, with whatever voxels
            each has, and with an empty scan where one has none.
        loss: (output, labels) -> a floating scalar. `output` is what the model returns, the features of a sparse tensor
            where the loss is one of `pumice.losses` or of torch.nn. In a graph, which has more rows than a scan fills,
            labels past them are the loss's `ignore_index` (an attribute, or the default of a parameter), output is 0
            there; losses of `pumice.losses` are told the number of rows instead, so that their sums have the same bits
            whatever the room.
        optimizer: of torch.optim; on a GPU made with fused=True or capturable=True.
        scaler: scales the loss, and skips steps whose gradients are not finite.
        clip_norm: the largest norm of all gradients together, as torch.nn.utils.clip_grad_norm_ takes it; inf measures it
            only. Default: it is not looked at.
        max_voxels: the most rows a call may have; the largest bucket has room for just so many. Default:
            a larger scan opens a larger bucket.
        buckets: the ratio between the room of one bucket and the next, above 1.
        max_bytes: of all buckets; the least recently used go first. There are at most 16 in any case.
        fallback: what becomes of a step beyond `max_voxels`, or beyond the room of its bucket: "raise", or "eager", which
            runs it eagerly, and for that waits in every call.
        eager: run what was learned without a graph, which is slower, and which a debugger can follow.
        input: makes of a `SparseTensor` what the model is called with, a tuple for several arguments; default:
            what the call was given.
        voxelize: how voxels are made of points, as in `compile`. Labels go with the points then: let the model return
            what it makes of each, as `Voxelizer(at_points=True)` does.
    Returns:
        A function of (coords, features, labels, batch_size=1, spatial_shape=None, stride=None), of (a sparse tensor,
        labels), for models on graphs of (features of nodes, edges, more, labels), or with `voxelize` of (points, features=all
        columns, labels, batch=None, batch_size=1), that returns the loss, a scalar of no dimension on the device. Labels are
        last, or named.
    Raises:
        UserError: for what is none of these, for modules with hooks, for a loss without an ignore index, and for
            a DistributedDataParallel with communication hooks, static_graph, mixed_precision or SyncBatchNorm.
    Waits:
        Never; of calls see `CompiledStep`.
    Example:
        >>> net = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU(), nn.SubMConv3d(8, 2, 1))
        >>> adam = torch.optim.AdamW(net.parameters(), fused=True)
        >>> step = pumice.compile_step(net, losses.cross_entropy, adam)
        >>> coords = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]])
        >>> step(coords, torch.ones(2, 4), torch.tensor([0, 1])).shape
        torch.Size([])
    """
    options = Options.checked(model, max_voxels, buckets, max_bytes, fallback, eager, input, voxelize)
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return joint_step(model, loss, optimizer, scaler, clip_norm, options)
    check_hooks(model)
    return CompiledStep(model, Training(model, loss, optimizer, scaler, clip_norm), options)
