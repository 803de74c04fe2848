"""Errors of layers in containers of all kinds: the path from the outermost network to the layer, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mistake_cases import CELLS, ROWS, said, x  # noqa: F401  (one is a fixture)

import pumice
import pumice.compat.minkowski as minkowski
import pumice.compat.spconv.pytorch as spconv
import pumice.compat.torchsparse as torchsparse
from pumice import nn


class Held(torch.nn.Module):
    """A user's network that holds another, or a wrapper of PyTorch's, by its name there."""

    def __init__(self, name: str, inner: torch.nn.Module) -> None:
        super().__init__()
        self.add_module(name, inner)

    def forward(self, x: Any) -> Any:
        return next(self.children())(x)


class Gives(torch.nn.Module):
    """Something else than what it is given."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: Any) -> Any:
        return self.value


THEIRS, OURS = torch.nn.Sequential, nn.Sequential
NESTINGS = {
    "1": lambda *last: OURS(nn.Identity(), *last),
    "backbone.1": lambda *last: Held("backbone", OURS(nn.Identity(), *last)),
    "0.1": lambda *last: THEIRS(OURS(nn.Identity(), *last)),
    "2.1": lambda *last: OURS(nn.Identity(), nn.Identity(), THEIRS(nn.Identity(), *last)),
    "backbone.0.0.1": lambda *last: Held("backbone", OURS(THEIRS(OURS(nn.Identity(), *last)))),
    "backbone.backbone.1": lambda *last: Held("backbone", Held("backbone", OURS(nn.Identity(), *last))),
    "0.backbone.1": lambda *last: OURS(Held("backbone", THEIRS(nn.Identity(), *last))),
    "backbone.body.1": lambda *last: Held("backbone", nn.Residual(OURS(nn.Identity(), *last))),
    "0.body.0.1": lambda *last: OURS(nn.Residual(THEIRS(OURS(nn.Identity(), *last)))),
    "module.backbone.1": lambda *last: Held("module", Held("backbone", OURS(nn.Identity(), *last))),
    "module.0.body.1": lambda *last: Held("module", THEIRS(nn.Residual(OURS(nn.Identity(), *last)))),
}
# Layers that stand last, what they are given where it is no sparse tensor, and what is said of them.
LAST = {
    "channels": (lambda: nn.SubMConv3d(5, 4, 3), None, "(SubMConv3d): features have 4 channels, the layer takes 5"),
    "no sparse tensor": (lambda: nn.SubMConv3d(4, 4, 3), ROWS, "(SubMConv3d) takes a sparse tensor, and got a Tensor"),
    "spconv": (lambda: spconv.SubMConv3d(4, 4, 3), ROWS, "(SubMConv3d) takes a SparseConvTensor, and got a Tensor"),
    "channels of spconv": (
        lambda: spconv.SubMConv3d(5, 4, 3), spconv.SparseConvTensor(ROWS, CELLS.int(), [64] * 3, 1),
        "(SubMConv3d): features have 4 channels, the layer takes 5",
    ),
    "torchsparse": (lambda: torchsparse.nn.Conv3d(4, 4, 3), ROWS, "(Conv3d) takes a SparseTensor, and got a Tensor"),
    "minkowski": (
        lambda: minkowski.MinkowskiConvolution(5, 4, 3, dimension=3), minkowski.SparseTensor(ROWS, CELLS.int()),
        "(MinkowskiConvolution): features have 4 channels, the layer takes 5",
    ),
    "a layer of torch.nn": (
        torch.nn.ReLU, torchsparse.SparseTensor(ROWS, CELLS.int()),
        "(torch.nn.ReLU) takes a tensor, and got a SparseTensor: torchsparse.nn.ReLU takes it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", NESTINGS)
@pytest.mark.parametrize("last", LAST)
def test_the_path_is_said_once_through_containers_of_all_kinds(x: pumice.SparseTensor, path: str, last: str) -> None:
    make, given, words = LAST[last]
    layers = [make()] if given is None else [OURS(Gives(given), make())]
    where = path if given is None else f"{path}.1"
    net = NESTINGS[path](*layers)
    for training in (True, False):
        text = said(lambda: net.train(training)(x))
        assert text.startswith(f"{where} {words}") and text.count(where) == 1, text


@pytest.mark.parametrize("path", NESTINGS)
def test_a_norm_behind_a_convolution_of_other_channels_is_named(x: pumice.SparseTensor, path: str) -> None:
    net = NESTINGS[path](OURS(nn.SubMConv3d(4, 4, 3), torch.nn.BatchNorm1d(5), nn.ReLU()))
    for training in (True, False):
        with torch.no_grad():
            text = said(lambda: net.train(training)(x))
        assert text == f"{path}.1 (torch.nn.BatchNorm1d): features have 4 channels, the layer takes 5"


def test_a_sparse_tensor_in_a_layer_of_torch_within_containers_of_both_kinds(x: pumice.SparseTensor) -> None:
    net = OURS(Held("backbone", THEIRS(nn.SubMConv3d(4, 4, 3), torch.nn.BatchNorm1d(4))))
    text = said(lambda: net(x), AttributeError)
    assert text.startswith("0.backbone.1 (torch.nn.BatchNorm1d) takes a tensor, and got a SparseTensor: build")


def test_a_sum_that_does_not_fit_is_named_with_its_path(x: pumice.SparseTensor) -> None:
    for kind in (OURS, THEIRS):
        block = nn.Residual(kind(nn.SubMConv3d(4, 8, 3)))
        for net, path in (
            (Held("backbone", block), "backbone (Residual): "), (THEIRS(block), "0 (Residual): "),
            (Held("module", OURS(block)), "module.0 (Residual): "), (block, "Residual: "),
        ):  # fmt: skip
            text = said(lambda: net(x))
            assert text.startswith(path) and text.count("Residual") == 1 and "8" in text, text


class Rewords(torch.nn.Module):
    """A user's module, which raises what it catches as another error."""

    def __init__(self, inner: torch.nn.Module, anew: Callable[[Exception], Exception], named: bool) -> None:
        super().__init__()
        self.inner, self.anew, self.named = inner, anew, named

    def forward(self, x: Any) -> Any:
        try:
            return self.inner(x)
        except pumice.UserError as error:
            raise self.anew(error) from (error if self.named else None)


def test_an_error_that_a_users_module_words_anew_has_its_path_once(x: pumice.SparseTensor) -> None:
    told = "1.inner.0 (SubMConv3d): features have 4 channels, the layer takes 5"
    for anew, words in (
        (lambda error: pumice.UserError(f"the stem: {error}"), f"the stem: {told}"),
        (lambda error: type(error)(str(error)), told),
        (lambda error: RuntimeError(f"the stem: {error}"), f"the stem: {told}"),
        (lambda error: pumice.UserError("give other channels"), "1 (Rewords): give other channels"),
    ):
        for named in (True, False):
            net = OURS(nn.Identity(), Rewords(OURS(nn.SubMConv3d(5, 4, 3)), anew, named))
            assert said(lambda: net(x), Exception) == words
