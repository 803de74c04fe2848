"""Usual mistakes with values: something else in place of a sparse tensor, and operators on one."""

from __future__ import annotations

import copy
import pathlib
import warnings

import numpy as np
import pytest
import torch
from mistake_cases import CELLS, ROWS, said, warned_of_nothing_yet, x  # noqa: F401  (two are fixtures)

import pumice
import pumice.compat.minkowski as minkowski
import pumice.compat.spconv.pytorch as spconv
import pumice.compat.torchsparse as torchsparse
from pumice import _checks, models, nn


@pytest.mark.parametrize(
    "name",
    "exp exp2 expm1 log log2 log1p sin cos erf floor ceil round trunc sign reciprocal rsqrt nan_to_num atan sgn frac".split(),
)
def test_functions_of_each_number_keep_the_sites(x: pumice.SparseTensor, name: str) -> None:
    y = x * 0.3
    result = getattr(torch, name)(y)
    assert result.coords is y.coords and torch.equal(result.features, getattr(torch, name)(y.features))
    assert torch.equal(torch.pow(y, 2).features, y.features**2)
    assert torch.equal(torch.nn.LogSigmoid()(y).features, torch.nn.functional.logsigmoid(y.features))
    assert "[3, 2, 4] of features [2, 4]" in said(lambda: torch.pow(y, torch.ones(3, 2, 4)))
    for other in (torch.isnan, torch.isfinite, torch.logical_not):  # of no features
        assert "x.features" in said(lambda other=other: other(y))


def test_operators_of_python(x: pumice.SparseTensor) -> None:
    assert torch.equal(abs(-x).features, x.features) and torch.equal(((x * 3) ** 2).features, x.features * 9)
    sites = "is on the same sites"
    for call, words in (
        (lambda: 1 - x, f"int - x: x is a SparseTensor, which has no such operator: x.replace(features=… - x.features) {sites}"),
        (lambda: 1 / x, f"int / x: x is a SparseTensor, which has no such operator: x.replace(features=… / x.features) {sites}"),
        (lambda: sum([x, x]), "int + x: "),
        (lambda: np.float64(2) - x, "float64 - x: "),
        (lambda: x > 0, "x > int: x is a SparseTensor, which has no such operator: compare its features, as x[x.features[:, 0] > 0]"),
        (lambda: x <= x, "x <= SparseTensor: "),
        (lambda: x @ x, "x @ SparseTensor: "),
        (lambda: 2**x, "int ** x: "),
        (lambda: x // 2, "x // int: "),
        (lambda: ~x, "~x: "),
        (lambda: x**x, "** takes a number, and got a SparseTensor"),
        (lambda: x * "2", "* takes a number, and got a str"),
        (lambda: x / None, "/ takes a number, and got None"),
        (lambda: x * torch.ones(3), "*: a tensor of shape (3,) for features of (2, 4): give a number, [N, 1], [C] or [N, C]"),
        (lambda: x / torch.ones(5, 2, 4), "/: a tensor of shape (5, 2, 4)"),
    ):
        assert words in said(call), words  # type: ignore[arg-type]
    assert (x * torch.ones(2, 1) * torch.ones(4) / torch.tensor(2)).shape == (2, 4)


def test_tensors_of_another_interface_are_named_in_full(x: pumice.SparseTensor) -> None:
    for layer, make in (
        (torchsparse.nn.Conv3d(4, 4, 3), "torchsparse.SparseTensor(feats, coords)"),
        (torchsparse.nn.ReLU(), "torchsparse.SparseTensor(feats, coords)"),
        (minkowski.MinkowskiConvolution(4, 4, 3, dimension=3), "ME.SparseTensor(features, coordinates)"),
        (minkowski.MinkowskiReLU(), "ME.SparseTensor(features, coordinates)"),
        (spconv.SubMConv3d(4, 4, 3), "spconv.SparseConvTensor(features, indices, spatial_shape, batch_size)"),
        (spconv.SparseMaxPool3d(2), "spconv.SparseConvTensor(features, indices, spatial_shape, batch_size)"),
    ):
        text = said(lambda layer=layer: layer(x))
        assert text.endswith(f"and got a pumice.SparseTensor: make one with {make}") and len(text) < 200, text
    for theirs, kind in (
        (torchsparse.SparseTensor(ROWS, CELLS), "torchsparse.SparseTensor"),
        (minkowski.SparseTensor(ROWS, CELLS), "minkowski.SparseTensor"),
    ):
        text = said(lambda theirs=theirs: nn.SubMConv3d(4, 4, 3)(theirs))
        assert f"takes a sparse tensor, and got a pumice.compat.{kind}: make one with pumice.SparseTensor(" in text


def test_voxels_and_samples_in_place_of_their_tensor() -> None:
    scan = pumice.simulate(1, beams=32)
    points = torch.from_numpy(scan.features())
    voxels = pumice.voxelize(points, size=1.0)
    sample = pumice.data.VoxelDataset([scan], pumice.data.SEMANTIC_KITTI, 1.0)[0]
    layer = nn.SubMConv3d(4, 4, 3)
    for given, remedy in (
        (voxels, "got a TensorVoxels: give voxels.tensor"),
        (sample, "got a Sample: give batch.tensor()"),
        (scan, "got a PointCloud: pumice.voxelize(torch.from_numpy(scan.positions)"),
        (pumice.voxelize(scan.positions, size=1.0), "got a Voxels: pumice.voxelize(torch.from_numpy(points), size=…).tensor"),
    ):
        for call in (
            lambda given=given: layer(given),
            lambda given=given: models.SPVCNN(4, 3)(given),
            lambda given=given: pumice.explain(layer, given),
            lambda given=given: pumice.cat([given]),
        ):
            assert remedy in said(call)
    for name, held in (("coords", "coords"), ("indices", "indices"), ("feats", "features"), ("size", "features.size")):
        assert said(lambda name=name: getattr(voxels, name), AttributeError) == (
            f"TensorVoxels have no {name!r}: it is voxels.tensor.{held}"
        )
        assert said(lambda name=name: getattr(sample, name), AttributeError).endswith(f": it is batch.tensor().{held}")
    assert said(lambda: voxels.colour, AttributeError) == "TensorVoxels have no 'colour'"
    assert "leave out the ()" in said(lambda: voxels.tensor())  # type: ignore[operator]
    assert len(copy.deepcopy(voxels)) == len(voxels) and copy.deepcopy(sample).items == 1


def test_one_tensor_in_place_of_a_list(x: pumice.SparseTensor) -> None:
    layer = nn.SubMConv3d(4, 4, 3).eval()
    assert said(lambda: pumice.cat(x)) == "cat: tensors is a SparseTensor: give a list, as [x]"  # type: ignore[arg-type]
    assert "tensors is a SparseTensor: give a list" in said(lambda: pumice.collate(x))  # type: ignore[arg-type]
    assert "tensors is a generator: give a list" in said(lambda: pumice.cat(y for y in [x]))  # type: ignore[arg-type]
    assert "got a list: give one of its items" in said(lambda: pumice.explain(layer, [x]))
    theirs = torchsparse.SparseTensor(ROWS, CELLS)
    assert "inputs is a pumice.compat.torchsparse.SparseTensor" in said(lambda: torchsparse.cat(theirs))  # type: ignore[arg-type]
    assert "cat takes SparseTensors, and got a Tensor" in said(lambda: torchsparse.cat([theirs, ROWS]))  # type: ignore[list-item]


def test_none_in_place_of_a_tensor(x: pumice.SparseTensor) -> None:
    assert said(lambda: pumice.SparseTensor(CELLS, None)) == "features is None: give a tensor"  # type: ignore[arg-type]
    assert said(lambda: pumice.SparseTensor(None, ROWS)) == "coords are None: give a tensor"  # type: ignore[arg-type]
    assert said(lambda: x.replace(features=None)) == "features is None: give a tensor"  # type: ignore[arg-type]
    assert said(lambda: x.replace(features=x)) == "features is a SparseTensor: give x.features"  # type: ignore[arg-type]


def test_no_voxels_of_points_are_warned_of_once() -> None:
    points = np.random.default_rng(0).random((30, 3), np.float32)
    far = [500, 500, 500, 600, 600, 600]
    for given in (points, torch.from_numpy(points)):
        _checks._warned.clear()
        with pytest.warns(UserWarning, match="none of 30 points is inside range, so there are no voxels: give") as caught:
            assert len(pumice.voxelize(given, size=0.1, range=far)) == 0
        assert caught[0].filename == __file__
    _checks._warned.clear()
    with pytest.warns(UserWarning, match="none of 30 points is inside spatial_shape, .* low corner of range"):
        pumice.voxelize(torch.from_numpy(points) - 5, size=0.1, spatial_shape=[10, 10, 10])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pumice.voxelize(points, size=0.1, range=far)
        _checks._warned.clear()
        pumice.voxelize(points[:0], size=0.1, range=far)
        pumice.voxelize(points, size=0.1)


@pytest.mark.parametrize("rows", [3, 4])
def test_a_file_of_points_whose_axes_are_exchanged(tmp_path: pathlib.Path, rows: int) -> None:
    points = np.arange(rows * 1000, dtype=np.float32).reshape(1000, rows) / 100
    words = f"has shape [{rows}, 1000]: give [points, columns]; it looks transposed, so save array.T"
    for array in (np.ascontiguousarray(points.T), np.asfortranarray(points.T)):
        np.save(tmp_path / "scan.npy", array)
        np.savez(tmp_path / "scan.npz", points=array)
        for name in ("scan.npy", "scan.npz"):
            assert words in said(lambda: pumice.read_points(tmp_path / name))
    np.save(tmp_path / "scan.npy", np.asfortranarray(points))
    np.testing.assert_array_equal(pumice.read_points(tmp_path / "scan.npy").positions, points[:, :3])


def test_the_name_of_a_file_in_place_of_points() -> None:
    for path in ("scan.bin", pathlib.Path("scan.bin")):
        text = said(lambda path=path: pumice.voxelize(path, size=0.1))  # type: ignore[call-overload]
        assert "'scan.bin': read the file, scan = pumice.read_points(path)" in text


def test_channels_and_classes_below_one() -> None:
    for make, words in (
        (lambda: nn.Linear(4, -1), "out_features = -1: give a whole number of at least 1"),
        (lambda: nn.Linear(0, 4), "in_features = 0"),
        (lambda: nn.Linear(4, out_features="8"), "out_features = '8'"),
        (lambda: nn.BatchNorm(-3), "num_features = -3"),
        (lambda: nn.BatchNorm("8"), "num_features = '8'"),
        (lambda: nn.SyncBatchNorm(0), "num_features = 0"),
        (lambda: nn.LayerNorm(0), "normalized_shape = 0"),
        (lambda: nn.InstanceNorm(0), "channels = 0"),
        (lambda: models.MinkUNet42(4, -1), "classes = -1"),
        (lambda: models.MinkUNet42(0, 4), "in_channels = 0"),
        (lambda: models.SPVCNN(4, 0), "classes = 0"),
        (lambda: models.MinkUNet42(4, 19, width_factor="0.5"), "width_factor = '0.5': give a number above 0, as 0.5"),
        (lambda: nn.SubMConv3d(4, 8, 3, dtype=torch.int32), "dtype = torch.int32: weights have a floating type"),
        (lambda: nn.SyncBatchNorm.convert(3), "module is an int: give a network"),
        (lambda: nn.init.kaiming_normal_(nn.SubMConv3d(4, 8, 3)), "weight is a SubMConv3d: give a tensor, as layer.weight"),
    ):
        assert words in said(make), words  # type: ignore[arg-type]
    assert nn.LayerNorm([4]).normalized_shape == (4,) and nn.Linear(4, 8).out_features == 8


def test_scans_made_by_hand() -> None:
    cloud = pumice.PointCloud(np.zeros((5, 3), np.float32))
    assert len(cloud) == 5 and cloud.features().shape == (5, 4) and cloud.labels is None
    for make, words in (
        (lambda: pumice.PointCloud(np.zeros((5, 2))), "PointCloud.positions has shape (5, 2): give [P, 3]"),
        (lambda: pumice.PointCloud([[0, 0, 0]]), "PointCloud.positions is a list: give a NumPy array"),
        (lambda: pumice.PointCloud(np.zeros((5, 3)), labels=np.zeros(4)), "PointCloud.labels has shape (4,): give [P], here [5]"),
        (lambda: pumice.PointCloud(np.zeros((5, 3)), 1.0), "PointCloud.intensity is a float: give a NumPy array"),
        (
            lambda: pumice.data.VoxelDataset([cloud], pumice.data.SEMANTIC_KITTI, voxel=0.1, augment=lambda scan: scan),
            "augment cannot be called with two arguments",
        ),
        (lambda: pumice.data.SimulatedScans(range(2), cache="/proc/x"), "cache = '/proc/x': the folder cannot be made"),
    ):
        assert words in said(make), words  # type: ignore[arg-type]


def test_tensors_among_sparse_ones_of_other_interfaces() -> None:
    mine = minkowski.SparseTensor(ROWS, CELLS)
    theirs = spconv.SparseConvTensor(ROWS, CELLS, [8, 8, 8], 1)
    voxels = spconv.utils.PointToVoxel([1, 1, 1], [0, 0, 0, 4, 4, 4], 4, 10, 5)
    for call, words in (
        (lambda: minkowski.cat(mine, ROWS), "ME.cat: tensors[1] is a torch.Tensor: give sparse tensors"),
        (lambda: spconv.functional.sparse_add(theirs, ROWS), "sparse_add: tensor 1 is a Tensor: give SparseConvTensors"),
        (lambda: voxels(np.zeros((3, 4))), "pc is an ndarray: give a tensor [points, C], as torch.from_numpy(pc)"),
        (lambda: torchsparse.utils.collate.sparse_collate([ROWS]), "sparse_collate: item 0 is a Tensor"),
    ):
        assert words in said(call), words  # type: ignore[arg-type]


def test_sites_seeds_and_losses_of_no_use(x: pumice.SparseTensor, tmp_path: pathlib.Path) -> None:
    scan = pumice.simulate(1, beams=32)
    sets = [pumice.data.VoxelDataset([scan], pumice.data.SEMANTIC_KITTI, voxel=0.4, points=points) for points in (False, True)]
    net = nn.SubMConv3d(4, 4, 3)
    for call, words in (
        (lambda: nn.Conv3d(4, 4, 2, stride=2)(x, x), "Conv3d finds the sites of its result itself, and got like = a SparseTensor"),
        (lambda: net(x, x.coords), "SubMConv3d finds the sites of its result itself"),
        (lambda: pumice.data.SimulatedScans([0.5])[0], "seeds[0] = 0.5: give a whole number"),
        (lambda: pumice.data.SimulatedScans([-1])[0], "seeds[0] = -1"),
        (lambda: pumice.data.collate([sets[0][0], sets[1][0]]), "one of samples[1] and samples[0] has points"),
        (lambda: pumice.tune(net, [x], loss=lambda output: 0, store=False), "loss cannot be called with two arguments"),
        (lambda: pumice.tune(net, [x], loss=lambda y, item: 5, store=False), "what loss returned is an int: give a tensor of one number"),
        (lambda: pumice.tune(net, [x], loss=lambda y, item: y.features, store=False), "what loss returned has shape [2, 4]"),
        (lambda: pumice.save_weights(net, tmp_path / "a.safetensors", torch.float16, "0.1"), "metadata = '0.1': give a dictionary"),  # type: ignore[arg-type]
        (lambda: pumice.data.SemanticKitti(5), "root is an int"),  # type: ignore[arg-type]
        (lambda: pumice.data.Waymo(None), "root is None"),  # type: ignore[arg-type]
        (lambda: pumice.data.NuScenes(tmp_path, 5), "version is an int"),  # type: ignore[arg-type]
        (lambda: spconv.SparseConvTensor(ROWS, CELLS, 8, 1), "spatial_shape = 8: give a number for each axis"),  # type: ignore[arg-type]
        (lambda: torchsparse.SparseTensor(ROWS, CELLS) + 1, "SparseTensor + an int: give another SparseTensor"),
        (lambda: torchsparse.nn.Conv3d(4, 8, 0), "kernel_size = (0, 0, 0), stride = (1, 1, 1): give whole numbers of at least 1"),
        (lambda: torchsparse.nn.Conv3d(4, 8, 3, stride=-1), "stride = (-1, -1, -1)"),
        (lambda: pumice.explain(x, net), "and got a SubMConv3d: give the network first, then its input"),  # type: ignore[arg-type]
        (lambda: spconv.utils.PointToVoxel(0.1, [0, 0, 0, 4, 4, 4], 4, 10, 5), "vsize_xyz = 0.1: give a size for each axis"),  # type: ignore[arg-type]
        (
            lambda: minkowski.MinkowskiInterpolation()(minkowski.SparseTensor(ROWS, CELLS), torch.rand(2, 3)),
            "query_coordinates have shape [2, 3]: give [points, 4], the batch index first",
        ),
    ):
        assert words in said(call), words  # type: ignore[arg-type]
