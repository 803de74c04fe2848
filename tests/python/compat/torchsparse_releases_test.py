"""Calls in the order of each release, and what is said where releases read them differently."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from conftest import random_sites
from programs import run
from torchsparse_state import switches

import pumice
from pumice.compat.foreign import PeerAssertionError
from pumice.compat.torchsparse import SparseTensor
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F


@pytest.mark.parametrize("release", ["1.4", "1.4.0", "2.0"])
def test_arguments_before_2_1(release: str) -> None:
    with switches(release):
        layer = spnn.Conv3d(8, 8, 2, 2, 1, False, True)
    assert layer.transposed and layer.bias is None
    assert layer.dilation == 1 and layer.padding == (0, 0, 0)


def test_arguments_of_2_1() -> None:
    with switches("2.1"), warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = spnn.Conv3d(8, 4, 3, 2, 1, 1, True, True, True)
    assert layer.transposed and layer.generative and layer.bias is not None
    assert layer.padding == (1, 1, 1)


def test_functions_before_2_1(device: torch.device) -> None:
    """(input, weight, kernel_size, bias, stride, dilation, transposed)"""
    with switches("1.4"):
        cells = random_sites(3, 8, 60).to(device)[:, [1, 2, 3, 0]]
        x = SparseTensor(torch.randn(len(cells), 3, device=device), cells)
        weight = torch.randn(8, 3, 4, device=device)
        down = F.conv3d(x, weight, 2, None, 2, 1)
        up = F.conv3d(down, torch.randn(8, 4, 2, device=device), 2, None, 2, 1, True)
        assert down.stride == (2, 2, 2) and up.coords is x.coords and up.feats.shape[1] == 2
        layer = spnn.Conv3d(3, 4, 2, 2).to(device)
        layer.kernel.data = weight
        assert torch.equal(layer(x).feats, down.feats)
        coarse = F.spdownsample(cells, 2, 2, 1)
        assert torch.equal(coarse.unique(dim=0), down.coords.unique(dim=0))
        by_item = coarse[:, [3, 0, 1, 2]]
        assert torch.equal(by_item, by_item.unique(dim=0))


def test_a_single_offset_with_a_stride_is_a_matrix_before_2_1(device: torch.device) -> None:
    shapes = {}
    cells = random_sites(3, 8, 60).to(device)
    rows = torch.randn(len(cells), 3, device=device)
    kernel = torch.randn(3, 5, device=device)
    results = {}
    for release in ("1.4", "2.1"):
        with switches(release):
            layer = spnn.Conv3d(3, 5, 1, 2).to(device)
            shapes[release] = tuple(layer.kernel.shape)
            layer.kernel.data = kernel.reshape(layer.kernel.shape)
            x = SparseTensor(rows, cells if release == "2.1" else cells[:, [1, 2, 3, 0]])
            y = layer(x)
            places = y.coords if release == "2.1" else y.coords[:, [3, 0, 1, 2]] // y.coords.new_tensor([1, 2, 2, 2])
            results[release] = dict(zip(map(tuple, places.tolist()), y.feats.tolist()))
    assert shapes == {"1.4": (3, 5), "2.1": (1, 3, 5)}
    assert results["1.4"] == results["2.1"] and len(results["2.1"]) > 0


CALLS: dict[str, tuple[Callable[[], object], bool]] = {
    "transposed in one, with a bias in the other": (lambda: spnn.Conv3d(8, 8, 2, 2, 1, False, True), True),
    "padding or dilation": (lambda: spnn.Conv3d(8, 8, 3, 2, 0), True),
    "a bias in one": (lambda: spnn.Conv3d(8, 8, 3, 1, 0, 1), True),
    "the same padding": (lambda: spnn.Conv3d(8, 8, 3, 2, 1), False),
    "which has no effect": (lambda: spnn.Conv3d(8, 8, 3, 1, 1), False),
    "by name": (lambda: spnn.Conv3d(8, 8, 3, 2, padding=0, bias=True, transposed=True), False),
    "no more than both have": (lambda: spnn.Conv3d(8, 8, 2, 2, bias=True), False),
    "an argument that only 2.1 has": (lambda: spnn.Conv3d(8, 8, 3, 2, 0, generative=False), False),
    "given twice before 2.1": (lambda: spnn.Conv3d(8, 8, 3, 2, 0, dilation=1), False),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_releases_read_differently_warns_once(call: str) -> None:
    make, differs = CALLS[call]
    with switches(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        make()
        make()
    texts = [str(warning.message) for warning in said]
    assert len(texts) == differs, texts
    assert all("releases before it read" in text and "use_version('2.1')" in text for text in texts)
    assert all(warning.filename == __file__ for warning in said)
    for release in ("1.4", "2.1"):
        with switches(release), warnings.catch_warnings():
            warnings.simplefilter("error")
            if release == "2.1" or "2.1" not in call and "by name" not in call and "twice" not in call:
                make()


def test_what_a_release_does_not_have() -> None:
    with switches("2.0"):
        with pytest.raises(pumice.UserError, match="padding is no argument before TorchSparse 2.1"):
            spnn.Conv3d(8, 8, 3, padding=1)
        with pytest.raises(TypeError, match="multiple values for argument 'dilation'"):
            spnn.Conv3d(8, 8, 3, 1, 1, dilation=1)
        with pytest.raises(TypeError, match="takes 9 arguments before 2.1, 10 were given"):
            spnn.Conv3d(8, 8, 3, 1, 1, False, False, None, None)
    with switches():
        for version in ("3.0", "abc", "2.x", "1.3", 2.1):
            with pytest.raises(pumice.UserError, match="give '2.1', '2.0' or '1.4'"):
                pumice.compat.torchsparse.use_version(version)  # type: ignore[arg-type]
        with pytest.raises(PeerAssertionError, match="give transposed = True"):
            spnn.Conv3d(8, 8, 3, generative=True)


def test_programs_that_nobody_changes_are_told_by_the_environment() -> None:
    text = "import pumice.compat\npumice.compat.install('torchsparse')\nimport torchsparse.nn as s\n"
    text += "from pumice.compat.torchsparse import conventions as c\n"
    text += "print(s.Conv3d(4, 4, 2, 2, 1, False, True).transposed, c.border)"
    done = run(text, PUMICE_TORCHSPARSE_VERSION="1.4", PUMICE_TORCHSPARSE_BORDER="1")
    assert done.stdout.strip() == "True True", done.stderr
    done = run(text, PYTHONWARNINGS="ignore")
    assert done.stdout.strip() == "False False", done.stderr


def test_install_keeps_what_was_chosen() -> None:
    done = run(
        "import pumice.compat, pumice.compat.torchsparse as t\nt.use_version('1.4')\n"
        "pumice.compat.install('torchsparse')\nprint(t.conventions.batch_first)"
    )
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("release", ["2.0", "2.1"])
def test_coordinates_by_stride(release: str) -> None:
    with switches(release):
        cells = random_sites(3, 8, 60)
        x = SparseTensor(torch.randn(len(cells), 3), cells if release == "2.1" else cells[:, [1, 2, 3, 0]])
        y = spnn.Conv3d(3, 3, 2, 2)(x)
        known = {stride: of[0] if release == "2.1" else of for stride, of in y._caches.cmaps.items()}
    assert known[(1, 1, 1)] is x.coords and known[(2, 2, 2)] is y.coords


def test_mixed_strides_keep_the_length_of_odd_axes(device: torch.device) -> None:
    """As TorchSparse pads them: an axis of stride 1 and an odd kernel by its half."""
    with switches("2.1"):
        layer = spnn.Conv3d(2, 3, 3, (1, 2, 2)).to(device)
        assert layer.padding == (1, 0, 0)
        cells = random_sites(3, 8, 90).to(device)
        x = SparseTensor(torch.randn(len(cells), 2, device=device), cells, spatial_range=(2, 8, 8, 8))
        y = layer(x)
    assert y.spatial_range == (2, 8, 3, 3)
    weight = layer.kernel.reshape(3, 3, 3, 2, 3).permute(4, 3, 2, 1, 0)
    grid = x.feats.new_zeros((2, 8, 8, 8, 2)).index_put(tuple(cells.long().unbind(1)), x.feats)
    expected = torch.nn.functional.conv3d(grid.movedim(-1, 1), weight, stride=(1, 2, 2), padding=(1, 0, 0))
    expected = expected.movedim(1, -1)[tuple(y.coords.long().unbind(1))]
    torch.testing.assert_close(y.feats, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("release", ["1.4", "2.0", "2.1"])
@pytest.mark.parametrize("count", [0, 1, 31, 33, 300])
def test_sites_that_are_made_are_sorted(device: torch.device, release: str, count: int) -> None:
    """By batch index, x, y, z, whatever the order of the input, whose rows outputs keep where its sites are
    kept."""
    with switches(release):
        cells = random_sites(3, 20, count).to(device) - torch.tensor([0, 7, 7, 7], dtype=torch.int32, device=device)
        rows = torch.randn(len(cells), 3, device=device)
        order = torch.randperm(len(cells), device=device)
        down, wide = spnn.Conv3d(3, 3, 2, 2).to(device), spnn.Conv3d(3, 3, 3, 2).to(device)
        same, up = spnn.Conv3d(3, 3, 3).to(device), spnn.Conv3d(3, 3, 2, 2, transposed=True).to(device)
        results = []
        for places in (torch.arange(len(cells), device=device), order):
            coords = cells[places] if release == "2.1" else cells[places][:, [1, 2, 3, 0]]
            x = SparseTensor(rows[places], coords)
            made = [down(x), wide(x), down(same(x)), down(down(x))]
            if release == "2.1":
                finer = spnn.Conv3d(3, 3, 3, 2, transposed=True, generative=True).to(device)
                torch.nn.init.ones_(finer.kernel)
                made += [finer(SparseTensor(x.feats, x.coords, 2)), finer(down(x))]
            for y in made:
                columns = y.coords if release == "2.1" else y.coords[:, [3, 0, 1, 2]]
                assert torch.equal(columns, columns.unique(dim=0))
            back = up(down(same(x)))
            assert torch.equal(back.coords, x.coords)
            results.append(([y.feats for y in made], same(x).feats, back.feats))
        for one, other in zip(results[0][0], results[1][0]):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        for one, other in zip(results[0][1:], results[1][1:]):
            torch.testing.assert_close(one[order], other, rtol=1e-4, atol=1e-5)
