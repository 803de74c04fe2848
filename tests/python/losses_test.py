"""Losses and figures against plain definitions."""

from __future__ import annotations

import pytest
import torch

from pumice import UserError
from pumice.losses import lovasz_softmax
from pumice.metrics import Confusion


def plain_lovasz(scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Berman et al. 2018, algorithm 1, class by class, rows that do not count taken out before."""
    known = (truth >= 0) & (truth < scores.shape[1])
    chances, truth = scores[known].softmax(1), truth[known]
    losses = []
    for c in range(scores.shape[1]):
        hit = (truth == c).to(scores.dtype)
        if hit.sum() == 0:
            continue
        error, order = (hit - chances[:, c]).abs().sort(descending=True)
        hit = hit[order]
        jaccard = 1 - (hit.sum() - hit.cumsum(0)) / (hit.sum() + (1 - hit).cumsum(0))
        jaccard = torch.cat([jaccard[:1], jaccard[1:] - jaccard[:-1]])
        losses.append((error * jaccard).sum())
    return torch.stack(losses).mean() if losses else scores.sum() * 0


@pytest.mark.parametrize("rows", [0, 1, 7, 400])
@pytest.mark.parametrize("ignored", [0.0, 0.4, 1.0])
def test_lovasz(device: torch.device, rows: int, ignored: float) -> None:
    scores = torch.randn(rows, 5, device=device).requires_grad_()
    truth = torch.randint(0, 4, (rows,), device=device)
    truth[torch.rand(rows, device=device) < ignored] = -1
    ours, plain = lovasz_softmax(scores, truth), plain_lovasz(scores, truth)
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)
    (grad,) = torch.autograd.grad(ours, scores)
    (expected,) = torch.autograd.grad(plain, scores)
    torch.testing.assert_close(grad, expected, rtol=1e-4, atol=1e-6)


def test_confusion(device: torch.device) -> None:
    confusion = Confusion(4)
    confusion.add(torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64))
    assert confusion.mean_iou() == 0 and confusion.accuracy() == 0
    truth = torch.tensor([0, 0, 0, 1, 1, -1, 255], device=device)
    confusion.add(truth, torch.tensor([0, 0, 1, 1, 2, 0, 0], device=device))
    iou = confusion.iou().tolist()
    assert iou[:3] == pytest.approx([2 / 3, 1 / 3, 0])
    assert iou[3] != iou[3]
    assert confusion.mean_iou() == pytest.approx(0.5)
    assert confusion.accuracy() == pytest.approx(0.6)
    table = confusion.table(["a", "b", "c", "d"]).splitlines()
    assert [line.split()[0] for line in table] == ["class", "a", "b", "mean"]


def test_truth_that_is_no_class_is_refused() -> None:
    with pytest.raises(UserError, match="truth is torch.float32"):
        lovasz_softmax(torch.randn(6, 3), torch.rand(6))
