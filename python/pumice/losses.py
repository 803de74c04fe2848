"""Losses of segmentation."""

from __future__ import annotations

import torch
from torch import Tensor

from . import _C


def lovasz_softmax(scores: Tensor, truth: Tensor) -> Tensor:
    """The Lovász extension of 1 - IoU, mean over the classes that `truth` has.

    scores [N, classes], any floating type; truth int64 [N], rows outside 0 … classes - 1 left out.
    """
    if scores.dim() != 2 or truth.shape != scores.shape[:1]:
        raise _C.UserError(
            f"scores have shape {tuple(scores.shape)} and truth {tuple(truth.shape)}: give "
            "[N, classes] and [N]"
        )
    if truth.is_floating_point() or truth.dtype == torch.bool:
        raise _C.UserError(f"truth is {truth.dtype}: give the class of each row, as int64")
    classes = scores.shape[1]
    known = (truth >= 0) & (truth < classes)
    chances = torch.softmax(scores.float(), 1)
    # Rows that do not count get error 0 and belong to no class, so nothing waits for the device.
    one_hot = truth[:, None] == torch.arange(classes, device=truth.device)
    hits = one_hot.t().float()
    errors = (hits - chances.t()).abs() * known
    errors, order = torch.sort(errors, dim=1, descending=True)
    hits = hits.gather(1, order)
    counted = known[order].float()
    total = hits.sum(1, keepdim=True)
    intersection = total - hits.cumsum(1)
    union = total + (counted - hits).cumsum(1)
    jaccard = 1 - intersection / union.clamp(min=1)
    steps = torch.cat([jaccard[:, :1], jaccard[:, 1:] - jaccard[:, :-1]], 1)
    losses = (errors * steps).sum(1)
    present = (total[:, 0] > 0).float()
    return (losses * present).sum() / present.sum().clamp(min=1)
