"""Measures how good a segmentation is."""

from __future__ import annotations

from collections.abc import Sequence

from . import _needs_torch  # noqa: F401  (first, since it says what is missing)

import torch

from . import _C
from ._checks import whole_number
from ._classes import check_classes, check_same_device, check_tensor, counted_rows


class Confusion:
    """Counts of (true class, predicted class), and the figures made of them. `matrix`: int64 [classes, classes], a row
    for each true class.

    Args:
        classes: how many there are.
        ignore_index: the true class of rows that do not count; default: `pumice.data.IGNORED`.
    Raises:
        UserError: for a number of classes below 1.
    Waits:
        `add` waits for the device.
    Example:
        >>> confusion = metrics.Confusion(2)
        >>> confusion.add(torch.tensor([0, 1, -1]), torch.tensor([0, 0, 0]))
        >>> confusion.accuracy(), confusion.mean_iou()
        (0.5, 0.25)
    """

    def __init__(self, classes: int, ignore_index: int = -1) -> None:
        self.classes = whole_number("classes", classes, 1)
        self.ignore_index = whole_number("ignore_index", ignore_index, -(2**63))
        self.matrix = torch.zeros(classes, classes, dtype=torch.int64)

    def add(self, truth: torch.Tensor, predicted: torch.Tensor) -> None:
        """Whole numbers [N] each, on one device. Waits for it. Raises UserError, and counts nothing, for
        unequal shapes, other types, true classes outside 0 … classes - 1 that are not `ignore_index`,
        and predictions outside 0 … classes - 1 where the truth counts."""
        check_classes("truth", truth)
        check_tensor("predicted", predicted)
        if truth.shape != predicted.shape:
            scores = predicted.dim() == truth.dim() + 1 and predicted.shape[:-1] == truth.shape
            raise _C.UserError(
                f"truth has shape {tuple(truth.shape)} and predicted {tuple(predicted.shape)}: give "
                + ("predicted.argmax(1)" if scores else "a prediction for each truth, for points predicted[point_to_voxel]")
            )
        check_classes("predicted", predicted)
        check_same_device("truth", truth, "predicted", predicted)
        truth = truth.long()  # narrow types cannot hold ignore_index, or the number of classes
        known = counted_rows("truth", truth, self.classes, self.ignore_index)
        found = predicted[known].long()
        if len(found) > 0:
            low, high = (int(value) for value in found.aminmax())
            if low < 0 or high >= self.classes:
                raise _C.UserError(
                    f"predicted goes from {low} to {high}: give classes from 0 to {self.classes - 1}"
                )
        cells = truth[known] * self.classes + found
        counts = torch.bincount(cells, minlength=self.classes**2)
        self.matrix = self.matrix.to(counts.device) + counts.reshape(self.matrix.shape)

    @property
    def present(self) -> torch.Tensor:
        """bool [classes]: which classes the truth has."""
        return self.matrix.sum(1) > 0

    def iou(self) -> torch.Tensor:
        """float64 [classes], NaN for classes that occur neither in truth nor prediction."""
        hits = self.matrix.diagonal().double()
        return hits / (self.matrix.sum(0) + self.matrix.sum(1) - self.matrix.diagonal())

    def mean_iou(self) -> float:
        """Over the classes that the truth has; 0 without any."""
        found = self.iou()[self.present]
        return float(found.mean()) if len(found) else 0.0

    def accuracy(self) -> float:
        """Share of rows that are predicted right; 0 without any."""
        total = int(self.matrix.sum())
        return float(self.matrix.diagonal().sum()) / total if total else 0.0

    def table(self, names: Sequence[str]) -> str:
        """A line for each class that the truth has, then the mean. names: one for each class."""
        if len(names) != self.classes:
            raise _C.UserError(f"names are {len(names)} for {self.classes} classes: give one for each")
        iou = self.iou()
        points = self.matrix.sum(1)
        lines = [f"{'class':<16}{'points':>12}{'IoU':>8}"]
        for index in torch.nonzero(self.present).flatten().tolist():
            lines.append(f"{names[index]:<16}{int(points[index]):>12}{float(iou[index]):>8.3f}")
        lines.append(f"{'mean':<16}{int(points.sum()):>12}{self.mean_iou():>8.3f}")
        return "\n".join(lines)
