"""Provides losses for segmentation. They take a count, and then look at no row past it, give those a gradient of 0, and
do not wait: rows that a compiled step has room for and does not use change nothing, not even a bit."""

from __future__ import annotations

from . import _needs_torch  # noqa: F401  (first, since it says what is missing)

from typing import Any

import torch
from torch import Tensor

from . import _C
from ._checks import whole_number
from ._classes import check_classes, check_same_device, check_tensor, counted_rows
from .ops import modes
from .ops.counted import Count, clear_tail, handed, is_counted, sum_rows
from .ops.recomputed import gradients_of


def cross_entropy(
    scores: Tensor,
    labels: Tensor,
    *,
    ignore_index: int = -1,
    weight: Tensor | None = None,
    label_smoothing: float = 0.0,
    count: Count = None,
) -> Tensor:
    """torch.nn.functional.cross_entropy, mean over the rows that count, in float32 (float64 of float64).

    Args:
        scores: [N, classes], any floating type, as a network gives them, before a softmax.
        labels: [N], whole numbers 0 … classes - 1, or `ignore_index` for rows that do not count.
        ignore_index: default: `pumice.data.IGNORED`.
        weight: [classes], what a row of each class counts; default: 1.
        label_smoothing: share of every label that all classes have alike, 0 to 1.
        count: how many rows are in use: their `Coordinates`, or an int64 tensor of one element on their device. Others
            do not count, and get a gradient of 0. Default: all are.
    Returns:
        A scalar; NaN where no row counts, as PyTorch's.
    Raises:
        UserError: for other shapes and types, for tensors on two devices, and for labels that are no class. On a GPU
        such a label makes the loss NaN, and the next call that waits raises it.
    Waits:
        Never.
    Example:
        >>> losses.cross_entropy(torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([0, -1]))
        tensor(0.6931)
    """
    _check(scores, labels, "labels")
    if weight is not None:
        check_tensor("weight", weight)
        if not weight.is_floating_point():
            raise _C.UserError(f"weight is {weight.dtype}: give what a row of each class counts, of a floating type")
        check_same_device("scores", scores, "weight", weight)
        weight = weight.to(modes.sum_type(scores.dtype))
    ignore_index = whole_number("ignore_index", ignore_index, -(2**63))
    if not 0 <= label_smoothing <= 1:
        raise _C.UserError(f"label_smoothing = {label_smoothing}: give a share, 0 to 1")
    if labels.dtype not in (torch.int32, torch.int64):
        labels = labels.long()  # narrow types cannot hold ignore_index
    rest = (weight, ignore_index, label_smoothing)
    if modes.traced(scores):
        return _by_torch(scores, labels, count, *rest)
    return _entropy(scores, labels, handed(count), *rest)


def _by_torch(
    scores: Tensor, labels: Tensor, count: Count, weight: Tensor | None, ignored: int, smoothing: float
) -> Tensor:
    labels = _ignored_past(labels.long(), count, ignored)
    rows = clear_tail(scores, count).to(modes.sum_type(scores.dtype))
    return torch.nn.functional.cross_entropy(
        rows, labels, weight, ignore_index=ignored, label_smoothing=smoothing
    )


def _ignored_past(labels: Tensor, count: Count, ignored: int) -> Tensor:
    """Labels, and the ignored one past the rows in use."""
    return clear_tail(labels - ignored, count) + ignored if is_counted(count) else labels


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        labels: Tensor,
        count: Any,
        weight: Tensor | None,
        ignored: int,
        smoothing: float,
    ) -> Tensor:
        loss, total, log_sum = _C.cross_entropy(scores, labels, weight, ignored, smoothing, count)
        ctx.save_for_backward(scores, labels, weight)
        ctx.sums = (total, log_sum)
        ctx.call = (ignored, smoothing, count)
        return loss.reshape(())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        scores, labels, weight = ctx.saved_tensors
        ignored, smoothing, count = ctx.call
        if torch.is_grad_enabled():

            def again(x: Tensor) -> Tensor:
                return _by_torch(x, labels, count, weight, ignored, smoothing)

            return *gradients_of(again, (scores,), grad), None, None, None, None, None
        made = _C.cross_entropy_gradient(
            scores, labels, weight, ignored, smoothing, count, *ctx.sums, grad
        )
        return made, None, None, None, None, None


_entropy = modes.function(_CrossEntropy)


def _check(scores: Tensor, labels: Tensor, name: str) -> None:
    check_tensor("scores", scores)
    check_tensor(name, labels)
    if scores.dim() != 2 or labels.shape != scores.shape[:1] or scores.shape[1] == 0:
        raise _C.UserError(
            f"scores have shape {tuple(scores.shape)} and {name} {tuple(labels.shape)}: give "
            "[N, classes] and [N], a row for each voxel or for each point"
        )
    check_classes(name, labels)
    if not scores.is_floating_point():
        raise _C.UserError(f"scores are {scores.dtype}: give those of the network, of a floating type")
    check_same_device("scores", scores, name, labels)


def lovasz_softmax(
    scores: Tensor, truth: Tensor, ignore_index: int = -1, count: Count = None
) -> Tensor:
    """The Lovász extension of 1 - IoU, mean over the classes that `truth` has. NaN among the scores gives NaN.

    Args:
        scores: [N, classes], any floating type, as a network gives them, before a softmax.
        truth: [N], whole numbers 0 … classes - 1, or `ignore_index` for rows that do not count.
        ignore_index: default: `pumice.data.IGNORED`. A class that is it does not count either, as in cross_entropy.
        count: how many rows are in use: their `Coordinates`, or an int64 tensor of one element on their device. Others
            do not count, and get a gradient of 0. Default: all are.
    Returns:
        A scalar, float32; 0 where no row counts.
    Raises:
        UserError: for other shapes and types, for tensors on two devices, and for truth outside the classes, as
        labels of a dataset's files are before a label map.
    Waits:
        For the device, to tell; in torch.compile and while a graph is captured it does not: there a kernel asserts
        it, as that of torch's cross_entropy always does, and the error comes with a later call. So it is with a count.
    Example:
        >>> losses.lovasz_softmax(torch.tensor([[9.0, -9.0], [-9.0, 9.0]]), torch.tensor([0, 1])).round()
        tensor(0.)
    """
    _check(scores, truth, "truth")
    classes = scores.shape[1]
    truth = truth.long()  # narrow types cannot hold ignore_index, or the number of classes
    in_room = is_counted(count)
    if in_room:
        scores = clear_tail(scores, count)
        truth = _ignored_past(truth, count, whole_number("ignore_index", ignore_index, -(2**63)))
    counted = counted_rows("truth", truth, classes, ignore_index, waits=not in_room)
    chances = torch.softmax(scores.float(), 1)
    # Rows that do not count get error 0 and belong to no class, so their number is not asked for.
    one_hot = (truth[:, None] == torch.arange(classes, device=truth.device)) & counted[:, None]
    hits = one_hot.t().float()
    errors = (hits - chances.t()).abs() * counted
    if in_room:  # rows past the count come last, and equal errors in the order of their rows
        errors = torch.where(counted, errors, torch.full_like(errors, -1.0))
    errors, order = torch.sort(errors, dim=1, descending=True, stable=in_room)
    if in_room:
        errors = errors.clamp(min=0)
    hits = hits.gather(1, order)
    present_rows = counted[order].float()
    total = hits.sum(1, keepdim=True)
    intersection = total - hits.cumsum(1)
    union = total + (present_rows - hits).cumsum(1)
    jaccard = 1 - intersection / union.clamp(min=1)
    steps = torch.cat([jaccard[:, :1], jaccard[:, 1:] - jaccard[:, :-1]], 1)
    terms = errors * steps
    losses = sum_rows(terms.t().contiguous(), count) if in_room else terms.sum(1)
    present = (total[:, 0] > 0).float()
    return (losses * present).sum() / present.sum().clamp(min=1)
