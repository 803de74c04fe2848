"""Losses and figures against plain definitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from conftest import NO_GPU, random_tensor

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
    truth = torch.tensor([0, 0, 0, 1, 1, -1, -1], device=device)
    confusion.add(truth, torch.tensor([0, 0, 1, 1, 2, 0, 0], device=device))
    iou = confusion.iou().tolist()
    assert iou[:3] == pytest.approx([2 / 3, 1 / 3, 0])
    assert iou[3] != iou[3]
    assert confusion.mean_iou() == pytest.approx(0.5)
    assert confusion.accuracy() == pytest.approx(0.6)
    table = confusion.table(["a", "b", "c", "d"]).splitlines()
    assert [line.split()[0] for line in table] == ["class", "a", "b", "mean"]


def refused(call: Callable[[], object], *words: str) -> None:
    """One sentence that says what was given and what to do."""
    with pytest.raises(UserError) as caught:
        call()
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert "\n" not in said


def test_labels_of_files_are_no_classes(device: torch.device) -> None:
    """As SemanticKITTI's files have them: forgetting the label map would train on nothing."""
    raw = torch.tensor([10, 40, 40, 252, 0, -1], device=device)
    scores = torch.randn(6, 5, device=device)
    words = ("truth holds 10, 40, 252 outside the classes 0 to 4", "4 of 6 rows", "label map", "is -1")
    refused(lambda: lovasz_softmax(scores, raw), *words)
    confusion = Confusion(5)
    refused(lambda: confusion.add(raw, scores.argmax(1)), *words)
    assert confusion.matrix.sum() == 0
    many = torch.arange(20, device=device)
    refused(lambda: lovasz_softmax(scores.new_zeros(20, 5), many), "holds 5, 6, 7 and 12 more values")
    for narrow in (torch.uint8, torch.int32):
        kept = torch.tensor([0, 255, 1, 0, 0, 0], device=device).to(narrow)
        refused(lambda t=kept: lovasz_softmax(scores, t), "truth holds 255")
        same = lovasz_softmax(scores, kept, ignore_index=255)
        torch.testing.assert_close(same, lovasz_softmax(scores, kept.long(), ignore_index=255))


def test_a_class_may_be_what_is_ignored() -> None:
    """0 is "unlabelled" in many datasets, as ignore_index of cross_entropy has it."""
    scores, truth = torch.randn(40, 4), torch.randint(0, 4, (40,))
    counted = truth != 0
    expected = lovasz_softmax(scores[counted], truth[counted])
    torch.testing.assert_close(lovasz_softmax(scores, truth, ignore_index=0), expected)
    confusion = Confusion(4, ignore_index=0)
    confusion.add(truth, scores.argmax(1))
    assert confusion.matrix.sum() == counted.sum() and not confusion.present[0]


def test_truth_that_is_no_class_is_refused() -> None:
    with pytest.raises(UserError, match="truth is torch.float32"):
        lovasz_softmax(torch.randn(6, 3), torch.rand(6))


def test_what_is_no_tensor_of_rows_is_refused() -> None:
    scores, truth = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, -1, 1])
    x = random_tensor()
    confusion = Confusion(3)
    refused(lambda: lovasz_softmax(x, truth), "scores is a SparseTensor", "scores.features")
    refused(lambda: lovasz_softmax(scores, truth.numpy()), "truth is an ndarray", "torch.as_tensor")
    refused(lambda: lovasz_softmax(scores, truth > 0), "truth is torch.bool", "int64")
    refused(lambda: lovasz_softmax(scores.long(), truth), "scores are torch.int64")
    refused(lambda: lovasz_softmax(scores.to("meta"), truth), "scores is on meta and truth on cpu")
    refused(lambda: lovasz_softmax(scores[:, :0], truth), "scores have shape (6, 0)")
    refused(lambda: confusion.add(truth.numpy(), truth), "truth is an ndarray")
    refused(lambda: confusion.add(truth, [0] * 6), "predicted is a list")
    refused(lambda: confusion.add(truth, scores), "predicted (6, 3)", "give predicted.argmax(1)")
    refused(lambda: confusion.add(truth, scores[:, 0]), "predicted is torch.float32")
    refused(lambda: confusion.add(truth, truth.to("meta")), "truth is on cpu and predicted on meta")
    refused(lambda: lovasz_softmax(scores, truth, ignore_index=None), "ignore_index = None")
    refused(lambda: Confusion(3, ignore_index="none"), "ignore_index = 'none'")
    refused(lambda: confusion.table(["a", "b"]), "names are 2 for 3 classes")
    assert confusion.matrix.sum() == 0


def test_a_compiled_loss_is_the_same_and_refuses_the_same() -> None:
    compiled = torch.compile(lovasz_softmax, backend="eager", fullgraph=True)
    scores, truth = torch.randn(30, 3, requires_grad=True), torch.randint(-1, 3, (30,))
    torch.testing.assert_close(compiled(scores, truth), lovasz_softmax(scores, truth))
    with pytest.raises(RuntimeError, match="truth holds values outside the classes 0 to 2"):
        compiled(scores, truth + 1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
def test_a_captured_loss_waits_for_nothing() -> None:
    scores = torch.randn(300, 5, device="cuda", requires_grad=True)
    truth = torch.randint(-1, 5, (300,), device="cuda")
    # Of a leaf of its own: autograd binds one to the stream where it was used first.
    alike = scores.detach().clone().requires_grad_()
    expected = lovasz_softmax(alike, truth)
    (wanted,) = torch.autograd.grad(expected, alike)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = lovasz_softmax(scores, truth)
        (grad,) = torch.autograd.grad(loss, scores)
    graph.replay()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(grad, wanted)
