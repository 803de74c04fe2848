"""Compiled models that are given points: voxels made inside the graph, on the CPU, on a pretended device
(pretended_device.py), and on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pretended_device
import pytest
import torch
from conftest import NO_GPU
from planned_test import expect_same, settle

import pumice
from pumice import Voxelizer, nn

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
SIZES = (0, 1, 31, 33, 900)
RANGE = (-2.0, -3.0, -2.5, 3.0, 2.0, 2.5)
VOXELIZERS = [
    Voxelizer(size=0.5),
    Voxelizer(size=[0.5, 0.4, 0.7], range=RANGE, reduction="max"),
    Voxelizer(size=0.5, spatial_shape=[4, 5, 6], reduction="first"),
    Voxelizer(size=0.25, range=RANGE, reduction="sum"),
]


def cloud(count: int, seed: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """[count, 4], the first three columns of which are in a box of 5 m."""
    generator = torch.Generator().manual_seed(seed)
    return (5 * torch.rand(count, 4, generator=generator) - 2.5).to(device, dtype)


def batch_of(points: torch.Tensor, seed: int) -> torch.Tensor:
    return torch.randint(0, 2, (len(points),), generator=torch.Generator().manual_seed(seed)).to(points.device)


def net() -> torch.nn.Module:
    return settle(nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU(), nn.SubMConv3d(8, 3, 1)))


class PointNet(torch.nn.Module):
    """Features of points beside those of their voxels."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8), nn.ReLU())
        self.head = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.ReLU(), torch.nn.LayerNorm(5))

    def forward(self, voxels: Any) -> Any:
        y = self.body(voxels.tensor)
        return {"points": self.head(voxels.at_points(y)), "voxels": y, "features": y.features * 2}


def of_points(model: torch.nn.Module, points: torch.Tensor, voxelizer: Voxelizer, **more: Any) -> Any:
    with torch.no_grad():
        voxels = voxelizer(points, **more)
        return model(voxels.tensor), voxels


# On the CPU.


def test_a_voxelizer_makes_what_voxelize_does() -> None:
    for voxelizer in VOXELIZERS:
        for seed, count in enumerate(SIZES):
            points = cloud(count, seed)
            batch = batch_of(points, seed)
            made = voxelizer(points, points * 2, batch=batch, batch_size=2)
            expected = pumice.voxelize(
                points, points * 2, size=voxelizer.size, range=voxelizer.range, reduction=voxelizer.reduction,
                batch=batch, batch_size=2, spatial_shape=voxelizer.spatial_shape,
            )  # fmt: skip
            assert torch.equal(made.coordinates, expected.coordinates)
            assert torch.equal(made.features, expected.features)
            assert torch.equal(made.point_to_voxel, expected.point_to_voxel)
    assert Voxelizer(size=1) == Voxelizer(size=[1, 1, 1.0]) and hash(Voxelizer(size=1)) == hash(Voxelizer(size=1.0))


def means_by_hand(points: torch.Tensor, size: float) -> dict[tuple[int, ...], torch.Tensor]:
    """Of each cell the mean of its points, in float64."""
    cells: dict[tuple[int, ...], list[torch.Tensor]] = {}
    for point in points:
        cell = tuple(math.floor(float(torch.div(value, size))) for value in point[:3])
        cells.setdefault(cell, []).append(point.double())
    return {cell: torch.stack(some).mean(0) for cell, some in cells.items()}


@pytest.mark.parametrize("compile", [pumice.compile, pretended_device.compile])
def test_voxels_are_those_found_by_hand(compile: Callable[..., Any]) -> None:
    fast = compile(torch.nn.Sequential(torch.nn.Identity()).eval(), voxelize=Voxelizer(size=0.5))
    for seed, count in enumerate((300, 301, 305, 33, 31, 1, 900)):
        points = cloud(count, seed)
        x = fast(points).exact()
        wanted = means_by_hand(points, 0.5)
        assert len(x) == len(wanted)
        for index, features in zip(x.indices.tolist(), x.features):
            torch.testing.assert_close(features.double(), wanted[tuple(index[1:])], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("which", range(len(VOXELIZERS)))
@pytest.mark.parametrize("compile", [pumice.compile, pretended_device.compile])
def test_what_comes_back_is_what_the_model_gives(compile: Callable[..., Any], which: int) -> None:
    model, voxelizer = net(), VOXELIZERS[which]
    fast = compile(model, voxelize=voxelizer)
    for seed, count in enumerate((900, 800, 700, 950, 31, 33, 1, 0, 1024, 1500, 1400, 1300, 900)):
        points = cloud(count, seed)
        expected, _ = of_points(model, points, voxelizer, batch_size=1)
        expect_same(fast(points), expected)
    if compile is pretended_device.compile:
        assert fast._recorder.graphs == 2 and len(fast._buckets) == 2


@pytest.mark.parametrize("compile", [pumice.compile, pretended_device.compile])
def test_what_is_on_voxels_comes_back_at_points_where_that_is_asked_for(compile: Callable[..., Any]) -> None:
    model = net()
    for voxelizer in VOXELIZERS:
        asked = Voxelizer(voxelizer.size, voxelizer.range, voxelizer.reduction, voxelizer.spatial_shape, at_points=True)
        fast = compile(model, voxelize=asked)
        for seed, count in enumerate((900, 800, 31, 33, 1, 0, 700)):
            points = cloud(count, seed)
            batch = batch_of(points, seed)
            features = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
            made = fast(points, features, batch=batch, batch_size=2)
            expected, voxels = of_points(model, points, voxelizer, features=features, batch=batch, batch_size=2)
            assert type(made) is torch.Tensor and made.shape == (count, 3)
            torch.testing.assert_close(made, voxels.at_points(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("compile", [pumice.compile, pretended_device.compile])
def test_models_may_go_back_to_points_themselves(compile: Callable[..., Any]) -> None:
    model = settle(PointNet())
    fast = compile(model, voxelize=VOXELIZERS[1], input=lambda voxels: voxels)
    for seed, count in enumerate((900, 800, 700, 33, 31, 1, 0, 900)):
        points = cloud(count, seed)
        made = fast(points)
        with torch.no_grad():
            expected = model(VOXELIZERS[1](points))
        torch.testing.assert_close(made["points"], expected["points"], rtol=1e-4, atol=1e-4)
        expect_same(made["voxels"], expected["voxels"])
        assert type(made["features"]) is pumice.CapacityTensor and type(made["points"]) is torch.Tensor
        torch.testing.assert_close(made["features"].exact().sort(0).values, expected["features"].sort(0).values,
                                   rtol=1e-4, atol=1e-4)  # fmt: skip


def test_results_are_of_their_own_memory() -> None:
    model = settle(PointNet())
    fast = pretended_device.compile(model, voxelize=VOXELIZERS[0], input=lambda voxels: voxels)
    scans = [cloud(900 + seed, seed) for seed in range(6)]
    made = [fast(points) for points in scans]
    for points, one in zip(scans, made):
        with torch.no_grad():
            expected = model(VOXELIZERS[0](points))
        torch.testing.assert_close(one["points"], expected["points"], rtol=1e-4, atol=1e-4)
        expect_same(one["voxels"], expected["voxels"])


def test_every_point_may_have_a_voxel_of_its_own() -> None:
    model = settle(PointNet())
    voxelizer = Voxelizer(size=1.0)
    fast = pretended_device.compile(model, voxelize=voxelizer, input=lambda voxels: voxels)
    for count in (1024, 1023, 1024, 1, 1024):
        points = torch.zeros(count, 4)
        points[:, 0] = torch.arange(count).float() + 0.5
        made = fast(points)
        with torch.no_grad():
            expected = model(voxelizer(points))
        assert type(made["features"]) is pumice.CapacityTensor and made["features"].rows() == count
        torch.testing.assert_close(made["points"], expected["points"], rtol=1e-4, atol=1e-4)


def test_half_precision_and_more_columns() -> None:
    model = settle(nn.Sequential(nn.SubMConv3d(6, 8, 3), nn.ReLU())).double()
    fast = pretended_device.compile(model, voxelize=VOXELIZERS[0])
    for seed in range(5):
        points = torch.cat([cloud(500, seed), cloud(500, seed + 50)[:, :2]], 1).double()
        expected, _ = of_points(model, points, VOXELIZERS[0])
        expect_same(fast(points), expected)


class Mixing(torch.nn.Module):
    def __init__(self, of_points: bool) -> None:
        super().__init__()
        self.of_points = of_points

    def forward(self, voxels: Any) -> Any:
        values = voxels.at_points(voxels.features) if self.of_points else voxels.features
        return values - values.mean(0)


@pytest.mark.parametrize("points", [False, True])
def test_models_that_mix_rows_are_refused(points: bool) -> None:
    fast = pretended_device.compile(Mixing(points).eval(), voxelize=VOXELIZERS[0], input=lambda voxels: voxels)
    given = cloud(500, 1)
    for _ in range(2):
        fast(given)
    for _ in range(2):
        with pytest.raises(pumice.UserError, match=r"the model \(Mixing\) cannot be recorded.*rows"):
            fast(given)


def test_room_for_voxels_is_learned_with_a_margin() -> None:
    fast = pretended_device.compile(net(), voxelize=Voxelizer(size=0.5))
    dense = cloud(4000, 1)
    dense[:, :3] *= 0.5
    for _ in range(3):
        fast(dense)
    bucket = next(iter(fast._buckets))
    voxels = len(Voxelizer(size=0.5)(dense))
    assert voxels * 1.25 < bucket._voxels == 1024 < bucket.capacity
    sparse = cloud(4000, 2)
    sparse[:, :3] *= 2
    fast.forget()
    for points in (dense, sparse, sparse):
        fast(points)
    bucket = next(iter(fast._buckets))
    assert len(Voxelizer(size=0.5)(sparse)) * 1.25 <= bucket._voxels or bucket._voxels == bucket.capacity


def test_a_most_of_voxels_is_the_room_of_every_bucket() -> None:
    fast = pretended_device.compile(net(), voxelize=Voxelizer(size=0.5), max_voxels=700)
    points = cloud(900, 1)
    few = points.clone()
    few[:, :3] *= 0.5
    assert len(Voxelizer(size=0.5)(points)) > 500
    for _ in range(4):
        fast(few)
    assert next(iter(fast._buckets))._voxels == 700
    small = pretended_device.compile(net(), voxelize=Voxelizer(size=0.5), max_voxels=500)
    with pytest.raises(pumice.UserError, match=r"\d+ voxels of 900 points, max_voxels = 500"):
        small(points)
    model = net()
    eager = pretended_device.compile(model, voxelize=Voxelizer(size=0.5), max_voxels=500, fallback="eager")
    for given in (points, few, few, few, points):
        expect_same(eager(given), of_points(model, given, Voxelizer(size=0.5))[0])
    assert eager._recorder.graphs == 1
    assert eager.plan(few) > 0


def test_plan_says_the_bytes_before_anything_runs_there() -> None:
    fast = pretended_device.compile(net(), voxelize=Voxelizer(size=0.5))
    assert fast.plan(cloud(900, 1)) == 1025 * 4 * 4 + 8 + 100 == fast.bytes
    fast.forget()
    points = cloud(900, 1)
    assert fast.plan(points, points.clone(), batch=batch_of(points, 1), batch_size=2) == 1025 * (2 * 16 + 4) + 8 + 100


class WithTable(torch.nn.Module):
    """Features of voxels, and a table of its own."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.body = nn.SubMConv3d(4, 3, 3)
        self.table = torch.nn.Parameter(torch.randn(rows, 5))

    def forward(self, x: Any) -> Any:
        return {"features": self.body(x).features, "table": self.table * 2}


@pytest.mark.parametrize("fewer", [False, True])
@pytest.mark.parametrize("compile", [pumice.compile, pretended_device.compile])
def test_a_table_with_as_many_rows_as_there_are_voxels_is_not_moved_to_points(compile: Callable[..., Any], fewer: bool) -> None:
    how = Voxelizer(size=0.5, at_points=True)
    clouds = [cloud(count, seed) for seed, count in enumerate((300, 300, 300, 200, 300, 250, 33, 300, 1))]
    if fewer:
        clouds.insert(0, cloud(90, 7))
    net = WithTable(len(how(clouds[-9]))).eval()
    fast = compile(net, voxelize=how)
    for points in [*clouds[:1] * 4, *clouds, clouds[-9]]:
        made = fast(points)
        with torch.no_grad():
            voxels = how(points)
            expected = net(voxels.tensor)
        torch.testing.assert_close(made["features"], voxels.at_points(expected["features"]), rtol=1e-4, atol=1e-4)
        assert type(made["table"]) is torch.Tensor and torch.equal(made["table"], expected["table"])


def test_a_table_with_as_many_rows_as_there_is_room_for_is_none_of_the_voxels() -> None:
    for rows in (1024, 1025):
        net = WithTable(rows).eval()
        fast = pretended_device.compile(net, voxelize=Voxelizer(size=0.5, at_points=True))
        for turn in range(5):
            made = fast(cloud(700 - turn, turn))
            assert type(made["table"]) is torch.Tensor and torch.equal(made["table"], net.table.detach() * 2)
        assert fast._recorder.graphs == 1


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: pumice.compile(net(), voxelize=0.5), "voxelize is .*give pumice.Voxelizer"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(3), "was given .*give points"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(), "was given nothing: give points"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(pumice.SparseTensor(torch.zeros(1, 4).int(), torch.ones(1, 4))), "was given"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(cloud(9, 0), cloud(8, 0)), "features have 8 rows"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(cloud(9, 0).int()), "points have shape"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(cloud(9, 0)[:, :2]), "points have shape"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(cloud(9, 0), batch=torch.zeros(9).int()), "batch_size is not"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(cloud(9, 0), spatial_shape=[3, 3, 3]), "Voxelizer.spatial_shape"),
    (lambda: pumice.compile(net(), voxelize=VOXELIZERS[0])(cloud(9, 0), cloud(9, 0).requires_grad_()), "gradient"),
    (lambda: pumice.compile(net())(torch.zeros(1, 4).int(), torch.ones(1, 4), batch=torch.zeros(1).int()), "batch is for points"),
    (lambda: Voxelizer(size=-1), "size along x = -1"),
    (lambda: Voxelizer(size="a"), "size = 'a'"),
    (lambda: Voxelizer(size=1, range=[1, 2]), "range has 2 numbers"),
    (lambda: Voxelizer(size=1, range=[0, 0, 0, 0, 1, 1]), "range along x"),
    (lambda: Voxelizer(size=1, reduction="median"), "reduction = 'median'"),
    (lambda: Voxelizer(size=1, spatial_shape=[1, 0, 1]), "spatial_shape"),
]  # fmt: skip


@pytest.mark.parametrize("call, part", BAD)
def test_mistakes_are_named(call: Callable[[], Any], part: str) -> None:
    with pytest.raises(pumice.UserError, match=part):
        call()


# On a GPU.


def near(made: torch.Tensor, expected: torch.Tensor) -> None:
    scale = expected.abs().max().clamp(min=1e-6) if expected.numel() else torch.ones((), device=expected.device)
    torch.testing.assert_close(made / scale, expected / scale, rtol=0, atol=1e-4)


@cuda
@pytest.mark.parametrize("which", range(len(VOXELIZERS)))
def test_graphs_of_points_give_what_the_model_does(which: int) -> None:
    model, voxelizer = settle(pumice.models.MinkUNet42(4, 5, width_factor=0.25)).cuda(), VOXELIZERS[which]
    if voxelizer.spatial_shape is not None:  # the network halves it four times
        voxelizer = Voxelizer(size=voxelizer.size, spatial_shape=[16, 32, 16], reduction=voxelizer.reduction)
    fast = pumice.compile(model, voxelize=voxelizer)
    at = pumice.compile(model, voxelize=Voxelizer(*[getattr(voxelizer, name) for name in ("size", "range", "reduction",
                                                  "spatial_shape")], at_points=True))  # fmt: skip
    for seed, count in enumerate((4000, 3900, 4000, 3950, 900, 31, 33, 1, 0, 3800, 5000, 5100, 5050, 5000, 4000)):
        points = cloud(count, seed, "cuda")
        batch = batch_of(points, seed)
        expected, voxels = of_points(model, points, voxelizer, batch=batch, batch_size=2)
        expect_same(fast(points, batch=batch, batch_size=2), expected)
        near(at(points, batch=batch, batch_size=2), voxels.at_points(expected))
    fast.wait()
    assert fast._recorder._graphs >= 2


@cuda
def test_voxels_made_in_a_graph_have_the_bits_of_eager_ones() -> None:
    model = torch.nn.Sequential(torch.nn.Identity()).eval()
    for voxelizer in VOXELIZERS:
        fast = pumice.compile(model, voxelize=voxelizer)
        for seed, count in enumerate((4000, 3900, 3950, 31, 33, 1, 0, 3800, 4000)):
            points = cloud(count, seed, "cuda")
            x, expected = fast(points).exact(), voxelizer(points, batch_size=1)
            if voxelizer.range is not None or voxelizer.spatial_shape is not None:
                assert torch.equal(x.indices, expected.coordinates) and torch.equal(x.features, expected.features)
            expect_same(x, expected.tensor, 0)


@cuda
def test_steady_calls_with_points_wait_for_nothing() -> None:
    fast = pumice.compile(settle(PointNet()).cuda(), voxelize=VOXELIZERS[0], input=lambda voxels: voxels)
    clouds = [cloud(3900 + seed, seed, "cuda") for seed in range(8)]
    for points in clouds[:4]:
        fast(points)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    refused = pumice._C.RefusedWaits()
    try:
        for points in clouds[4:]:
            fast(points)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        del refused
    fast.wait()


@cuda
def test_more_voxels_than_room_are_said() -> None:
    model = net().cuda()
    fast = pumice.compile(model, voxelize=Voxelizer(size=0.5, range=[-9, -9, -9, 9, 9, 9]))
    dense = cloud(4000, 1, "cuda")
    dense[:, :3] *= 0.5
    for _ in range(4):
        fast(dense)
    sparse = cloud(4000, 2, "cuda")
    sparse[:, :3] *= 3
    made = fast(sparse)
    with pytest.raises(pumice.UserError, match=r"voxels: rows: \d+ needed, capacity \d+"):
        made.rows()
    expect_same(fast(dense), of_points(model, dense, fast.options.voxelizer)[0])
    eager = pumice.compile(model, voxelize=fast.options.voxelizer, fallback="eager")
    for given in (dense, dense, dense, sparse, sparse, dense):
        expect_same(eager(given), of_points(model, given, fast.options.voxelizer)[0])
    lost = dense.clone()
    lost[17, 1] = float("nan")
    fast(lost)
    with pytest.raises(pumice.UserError, match="1 of 4000"):
        fast.wait()
