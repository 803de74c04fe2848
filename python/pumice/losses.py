"""Provides losses for segmentation."""

from __future__ import annotations

from . import _needs_torch  # noqa: F401  (first, since it says what is missing)

import torch
from torch import Tensor

from . import _C
from ._classes import check_classes, check_same_device, check_tensor, counted_rows


def lovasz_softmax(scores: Tensor, truth: Tensor, ignore_index: int = -1) -> Tensor:
    """The Lovász extension of 1 - IoU, mean over the classes that `truth` has. NaN among the scores gives NaN.

    Args:
        scores: [N, classes], any floating type, as a network gives them, before a softmax.
        truth: [N], whole numbers 0 … classes - 1, or `ignore_index` for rows that do not count.
        ignore_index: default: `pumice.data.IGNORED`. A class that is it does not count either, as in cross_entropy.
    Returns:
        A scalar, float32; 0 where no row counts.
    Raises:
        UserError: for other shapes and types, for tensors on two devices, and for truth outside the classes, as
        labels of a dataset's files are before a label map.
    Waits:
        For the device, to tell; in torch.compile and while a graph is captured it does not: there a kernel asserts
        it, as that of torch's cross_entropy always does, and the error comes with a later call.
    Example:
        >>> losses.lovasz_softmax(torch.tensor([[9.0, -9.0], [-9.0, 9.0]]), torch.tensor([0, 1])).round()
        tensor(0.)
    """
    check_tensor("scores", scores)
    check_tensor("truth", truth)
    if scores.dim() != 2 or truth.shape != scores.shape[:1] or scores.shape[1] == 0:
        raise _C.UserError(
            f"scores have shape {tuple(scores.shape)} and truth {tuple(truth.shape)}: give "
            "[N, classes] and [N], a row for each voxel or for each point"
        )
    check_classes("truth", truth)
    if not scores.is_floating_point():
        raise _C.UserError(f"scores are {scores.dtype}: give those of the network, of a floating type")
    check_same_device("scores", scores, "truth", truth)
    classes = scores.shape[1]
    truth = truth.long()  # narrow types cannot hold ignore_index, or the number of classes
    counted = counted_rows("truth", truth, classes, ignore_index)
    chances = torch.softmax(scores.float(), 1)
    # Rows that do not count get error 0 and belong to no class, so their number is not asked for.
    one_hot = (truth[:, None] == torch.arange(classes, device=truth.device)) & counted[:, None]
    hits = one_hot.t().float()
    errors = (hits - chances.t()).abs() * counted
    errors, order = torch.sort(errors, dim=1, descending=True)
    hits = hits.gather(1, order)
    present_rows = counted[order].float()
    total = hits.sum(1, keepdim=True)
    intersection = total - hits.cumsum(1)
    union = total + (present_rows - hits).cumsum(1)
    jaccard = 1 - intersection / union.clamp(min=1)
    steps = torch.cat([jaccard[:, :1], jaccard[:, 1:] - jaccard[:, :-1]], 1)
    losses = (errors * steps).sum(1)
    present = (total[:, 0] > 0).float()
    return (losses * present).sum() / present.sum().clamp(min=1)
