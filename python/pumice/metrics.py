"""How good a segmentation is."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from . import _C
from ._checks import whole_number


class Confusion:
    """Counts of (true class, predicted class), and the figures made of them.

    Rows with a true class outside 0 … classes - 1 do not count.
    """

    def __init__(self, classes: int) -> None:
        self.classes = whole_number("classes", classes, 1)
        self.matrix = torch.zeros(classes, classes, dtype=torch.int64)

    def add(self, truth: torch.Tensor, predicted: torch.Tensor) -> None:
        """int [N] each, on one device. Waits for the device. Raises UserError for unequal shapes and
        for predictions outside 0 … classes - 1 where the truth counts."""
        if truth.shape != predicted.shape:
            raise _C.UserError(
                f"truth has shape {tuple(truth.shape)} and predicted {tuple(predicted.shape)}: give "
                "a prediction for each truth"
            )
        known = (truth >= 0) & (truth < self.classes)
        found = predicted[known].long()
        if len(found) > 0:
            low, high = (int(value) for value in found.aminmax())
            if low < 0 or high >= self.classes:
                raise _C.UserError(
                    f"predicted goes from {low} to {high}: give classes from 0 to {self.classes - 1}"
                )
        cells = truth[known].long() * self.classes + found
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
        """A line for each class that the truth has, then the mean."""
        iou = self.iou()
        points = self.matrix.sum(1)
        lines = [f"{'class':<16}{'points':>12}{'IoU':>8}"]
        for index in torch.nonzero(self.present).flatten().tolist():
            lines.append(f"{names[index]:<16}{int(points[index]):>12}{float(iou[index]):>8.3f}")
        lines.append(f"{'mean':<16}{int(points.sum()):>12}{self.mean_iou():>8.3f}")
        return "\n".join(lines)
