"""Networks: the names and shapes that the C++ networks have, and that they learn."""

from __future__ import annotations

import json
import pathlib

import pytest
import torch
from conftest import close, random_tensor, working_type

import pumice
from pumice import models

GOLDEN = pathlib.Path(__file__).parent.parent / "nn" / "golden"
NETWORKS = {
    "minkunet42_spvnas": lambda: models.MinkUNet42(),
    "minkunet42_driving": lambda: models.MinkUNet42(widths="driving"),
    "centerpoint": lambda: models.CenterPointEncoder(),
    "second": lambda: models.SecondEncoder(),
}
SMALL = (4, 4, 4, 5, 6, 6, 5, 4, 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_names_and_shapes_are_those_of_the_cpp_network(name: str) -> None:
    if not GOLDEN.exists():
        pytest.skip("the lists of the C++ tests are not here")
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
    expected = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in lines}
    state = NETWORKS[name]().state_dict()
    found = {k: list(v.shape) for k, v in state.items() if not k.endswith("num_batches_tracked")}
    assert found == expected


def test_a_width_factor_rounds_to_nearest() -> None:
    narrow = models.MinkUNet42(width_factor=0.1)
    assert narrow.widths == (3, 3, 6, 13, 26, 26, 13, 10, 10)
    assert models.MinkUNet42(width_factor=1e-6).widths == (1,) * 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"widths": "narrow"}, "spvnas, driving"),
        ({"widths": [1, 2, 3]}, "nine numbers"),
        ({"widths": [0] * 9}, "at least 1"),
        ({"width_factor": 0}, "above 0"),
        ({"width_factor": float("nan")}, "above 0"),
    ],
)
def test_widths_that_make_no_network(arguments: dict, said: str) -> None:
    with pytest.raises(pumice.UserError, match=said):
        models.MinkUNet42(**arguments)


@pytest.mark.parametrize("count", [0, 1, 400])
def test_minkunet_scores_every_site(device: torch.device, count: int) -> None:
    x = random_tensor(count=count, extent=16, dtype=working_type(device), device=device)
    model = models.MinkUNet42(4, 7, SMALL).to(device, x.dtype).eval()
    y = model(x)
    assert y.coords.is_same(x.coords)
    assert y.features.shape == (len(x), 7) and bool(torch.isfinite(y.features).all())


def test_minkunet_takes_negative_coordinates(device: torch.device) -> None:
    """Moved by a multiple of the coarsest cell, the same scores come out."""
    x = random_tensor(dtype=working_type(device), device=device, extent=32)
    model = models.MinkUNet42(4, 7, SMALL).to(device, x.dtype).eval()
    cells = x.indices.clone()
    cells[:, 1:] -= 32
    moved = pumice.SparseTensor(cells, x.features, batch_size=x.batch_size)
    close(model(moved).features, model(x).features, sums=100)


def test_every_parameter_gets_a_gradient(device: torch.device) -> None:
    x = random_tensor(dtype=working_type(device), device=device, extent=40)
    model = models.MinkUNet42(4, 7, SMALL).to(device, x.dtype)
    model(x).features.square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name


@pytest.mark.parametrize(
    ("encoder", "grid"),
    [(models.CenterPointEncoder, [48, 40, 41]), (models.SecondEncoder, [40, 48, 41])],
)
def test_encoders_end_at_an_eighth(device: torch.device, encoder: type, grid: list[int]) -> None:
    x = random_tensor(dtype=working_type(device), device=device, extent=40, count=500)
    x = pumice.SparseTensor(x.indices, x.features.detach(), spatial_shape=grid, batch_size=2)
    model = encoder().to(device, x.dtype).eval()
    y = model(x)
    assert y.spatial_shape == (grid[0] // 8, grid[1] // 8, 2)
    assert y.features.shape[1] == 128
    stages = model.stages(x)
    assert list(stages)[-1] == "conv_out" and len(stages) == 6
    close(stages["conv_out"].features, y.features, sums=1)


def test_minkunet_learns(device: torch.device) -> None:
    """Which half of the grid a site is in: scores follow the features within a few steps."""
    torch.manual_seed(0)
    dtype = torch.float32
    x = random_tensor(dtype=dtype, device=device, extent=16, count=600)
    truth = (x.features[:, 0] > 0).long().detach()
    model = models.MinkUNet42(4, 2, (8,) * 9).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    losses = []
    for _ in range(25):
        loss = torch.nn.functional.cross_entropy(model(x).features, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0], losses
