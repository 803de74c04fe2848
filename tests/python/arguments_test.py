"""Wrong arguments: errors name the argument, its value, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import random_sites

import pumice
import pumice.compat.minkowski as ME
import pumice.compat.spconv as spconv
import pumice.compat.torchsparse as torchsparse
from pumice import data, losses, metrics, nn, ops

INTEGERS = [torch.int64, torch.int32, torch.uint8, torch.bool]


def refused(call: Callable[[], Any], *said: str) -> None:
    with pytest.raises(pumice.UserError) as raised:
        call()
    for words in said:
        assert words in str(raised.value), str(raised.value)


@pytest.fixture
def x(device: torch.device) -> pumice.SparseTensor:
    cells = random_sites(3, 9, 60, batch=1).to(device)
    return pumice.SparseTensor(cells, torch.randn(len(cells), 4, device=device))


NOTHING: dict[str, Callable[[], Any]] = {
    "cat: tensors": lambda: pumice.cat([]),
    "collate: tensors": lambda: pumice.collate([]),
    "Add: tensors": lambda: nn.Add()(),
    "collate: samples": lambda: data.collate([]),
    "scans": lambda: data.VoxelDataset([], data.SEMANTIC_KITTI),
    "ids": lambda: data.LabelMap((), {}),
    "cat: inputs": lambda: torchsparse.cat([]),
    "sparse_collate: inputs": lambda: torchsparse.utils.collate.sparse_collate([]),
    "sparse_collate_fn: inputs": lambda: torchsparse.utils.collate.sparse_collate_fn([]),
    "MinkowskiUnion: inputs": lambda: ME.MinkowskiUnion()(),
    "batched_coordinates: coords": lambda: ME.utils.batched_coordinates([]),
    "sparse_collate: feats": lambda: ME.utils.sparse_collate([], []),
    "batch_sparse_collate: data": lambda: ME.utils.batch_sparse_collate([]),
    "JoinTable: input": lambda: spconv.JoinTable()([]),
    "AddTable: input": lambda: spconv.AddTable()([]),
    "sparse_add: tens": lambda: spconv.AddTableMisaligned()([]),
}


@pytest.mark.parametrize("what", NOTHING)
def test_nothing_is_refused_by_name(what: str) -> None:
    refused(NOTHING[what], f"{what} is empty: give at least one")


def test_joining_nothing_is_refused() -> None:
    refused(lambda: nn.Cat()(), "cat: tensors is empty")
    refused(lambda: ME.cat([]), "cat: tensors is empty")
    refused(lambda: data.Mix([]), "scans is empty")


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "one", None])
def test_seeds(seed: Any) -> None:
    bound = "below 2^64" if seed == 2**64 else "of at least 0"
    refused(lambda: pumice.simulate(seed), f"seed = {seed!r}: give a whole number {bound}")
    if isinstance(seed, int):
        refused(lambda: data.SimulatedScans([seed])[0], f"seeds[0] = {seed}: give a whole number {bound}")


def test_seeds_of_any_integer_type() -> None:
    cloud = pumice.simulate(np.int64(2), 32)
    assert np.array_equal(cloud.positions, pumice.simulate(2, 32).positions)
    assert np.array_equal(cloud.positions, pumice.simulate(torch.tensor(2), 32).positions)


@pytest.mark.parametrize(
    "said, call",
    [
        ("beams = 0", lambda: pumice.simulate(beams=0)),
        ("sweeps = -1", lambda: pumice.simulate(sweeps=-1)),
        ("size along x = -1", lambda: pumice.voxelize(np.zeros((2, 3)), size=-1)),
        ("size has 2 numbers", lambda: pumice.voxelize(np.zeros((2, 3)), size=[1, 1])),
        ("points have 2 columns", lambda: pumice.voxelize(np.zeros((2, 2)), size=1)),
        ("probability = 2: give a number from 0 to 1", lambda: data.Sometimes(2, data.Flip())),
        ("probability = nan", lambda: data.Sometimes(float("nan"), data.Flip())),
        ("most = -0.1", lambda: data.Drop(-0.1)),
        ("deviation = -1", lambda: data.Jitter(-1)),
        ("deviation = (0.1, -1, 0)", lambda: data.Shift((0.1, -1, 0))),
        ("deviation = [1]", lambda: data.Shift([1])),
        ("low, high = 2, 1", lambda: data.Rotate(2, 1)),
        ("low, high = -1, 1", lambda: data.Scale(-1, 1)),
        ("axes = 3: give a whole number from 0 to 2", lambda: data.Flip([3])),
        ("narrowest, widest = 1, 0.5", lambda: data.Mix([pumice.simulate(1, 32)], 1, 0.5)),
        ("ids[5] = 3: give a whole number from -1 to 0", lambda: data.LabelMap(("a",), {5: 3})),
        ("a number of ids = -5", lambda: data.LabelMap(("a",), {-5: 0})),
        ("seed = -1", lambda: data.VoxelDataset([0], data.WAYMO, seed=-1)),
        ("index = -1", lambda: data.VoxelDataset([0], data.WAYMO)[-1]),
        ("classes = 0", lambda: metrics.Confusion(0)),
        ("kernel_size = 2.5: give whole", lambda: nn.SubMConv3d(4, 8, 2.5)),
        ("stride = [2, 2, 0.5]: give whole", lambda: nn.Conv3d(4, 8, 2, [2, 2, 0.5])),
    ],
)
def test_numbers_out_of_range(said: str, call: Callable[[], Any]) -> None:
    refused(call, said)


@pytest.mark.parametrize("items", [0, -1, -3, 1.5, "2", 2**31])
def test_batch_sizes(device: torch.device, items: Any) -> None:
    points = torch.rand(5, 3, device=device)
    said = f"batch_size = {items!r}: give a whole number " + ("below 2^31" if items == 2**31 else "of at least 1")
    refused(lambda: pumice.voxelize(points, size=0.1, batch_size=items), said)
    refused(lambda: pumice.models.PointTensor.of(points, size=0.1).voxels(items), said)
    if items != 0:  # of no sites there may be no item
        refused(lambda: pumice.SparseTensor(torch.zeros(0, 4).int(), torch.ones(0, 1), batch_size=items), "batch_size = ")


def test_whole_numbers_of_any_type_make_windows() -> None:
    window = nn.Conv3d(4, 8, 2, 2).window
    for two in (np.int64(2), [2.0] * 3, torch.tensor([2, 2, 2])):
        assert nn.Conv3d(4, 8, two, two).window == window


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_features(x: pumice.SparseTensor, dtype: torch.dtype) -> None:
    rows = torch.ones(len(x), 4, dtype=dtype, device=x.device)
    said = (f"features are {dtype}", "features.float()")
    refused(lambda: pumice.SparseTensor(x.coords, rows), *said)
    refused(lambda: pumice.SparseTensor(x.indices, rows), *said)
    refused(lambda: x.replace(features=rows), *said)
    refused(lambda: x.to(dtype), *said)
    refused(lambda: ops.interpolate(rows, x.coords, torch.zeros(1, 4, device=x.device)), *said)
    assert len(nn.SubMConv3d(4, 8, 3).to(x.device)(x.replace(features=rows.float()))) == len(x)


def test_integer_features_of_other_interfaces(x: pumice.SparseTensor) -> None:
    rows = torch.ones(len(x), 4, dtype=torch.int64, device=x.device)
    layer = torchsparse.nn.Conv3d(4, 8, 3).to(x.device)
    refused(lambda: layer(torchsparse.SparseTensor(rows, x.indices)), "i64", "convert it to")
    layer = ME.MinkowskiConvolution(4, 8, 3, dimension=3).to(x.device)
    refused(lambda: layer(ME.SparseTensor(rows, x.indices)), "i64", "convert it to")
    # spconv's layers bring features and weight to one type.
    layer = spconv.SubMConv3d(4, 8, 3).to(x.device)
    inputs = spconv.SparseConvTensor(rows, x.indices, [9] * 3, 1)
    assert torch.equal(layer(inputs).features, layer(inputs.replace_feature(rows.float())).features)


def test_other_things_than_tensors(x: pumice.SparseTensor) -> None:
    rows = x.features
    refused(lambda: pumice.SparseTensor(x.indices.cpu().numpy(), rows), "coords are an ndarray", "as_tensor")
    refused(lambda: pumice.SparseTensor(x.indices, [[1.0]]), "features is a list", "as_tensor")
    refused(lambda: x + rows, "+ takes sparse tensors, and got a Tensor", "replace(features")
    refused(lambda: x + 1, "got an int")
    refused(lambda: pumice.cat([x, rows]), "cat takes sparse tensors, and got a Tensor")
    refused(lambda: pumice.cat([rows]), "got a Tensor")
    refused(lambda: pumice.collate([rows]), "collate takes sparse tensors")
    refused(lambda: nn.Add()(rows, x), "Add takes sparse tensors")
    layer = nn.ConvTranspose3d(4, 8, 2, 2).to(x.device)
    refused(lambda: layer(x, rows), "like is a Tensor")


def test_no_ranges_of_integer_types_where_something_else_was_given(x: pumice.SparseTensor) -> None:
    refused(lambda: pumice.SparseTensor(x.indices, x.features, batch_size="2"), "batch_size = '2': give a whole number")
    refused(lambda: pumice.SparseTensor(x.indices, x.features, stride=[1, 1, 0.5]), "stride = 0.5: give a whole number")
    refused(lambda: x.dense(shape=[9, 9, "9"]), "shape = '9': give a whole number")
    refused(lambda: ops.reduce_rows(x.features, torch.zeros(len(x)).long(), "1"), "rows = '1': give a whole number")
    refused(lambda: ops.reduce_rows(x.features, torch.zeros(len(x)).long(), 2**70), "from -2^63 to 2^63 - 1")


@pytest.mark.parametrize("eps", [-1, -1e-5, float("nan"), float("inf"), "small", None])
def test_what_a_norm_adds_to_a_variance_is_not_negative(x: pumice.SparseTensor, eps: Any) -> None:
    for norm in (nn.BatchNorm, nn.SyncBatchNorm, nn.LayerNorm, nn.InstanceNorm):
        refused(lambda norm=norm: norm(4, eps=eps), f"eps = {eps!r}: give a small number that is not negative, as 1e-5")
    for training in (True, False):
        one = torch.ones(4, device=x.device)
        refused(lambda training=training: ops.batch_norm(x.features, one, one, one, one, training, eps=eps), "eps = ")


def test_grids_of_a_view_from_above() -> None:
    refused(lambda: nn.ToBEV(shape=3), "shape = 3: give 3 numbers, one for each axis, as [3, 3, 3]")
    refused(lambda: nn.ToBEV(shape=[8, 8, "5"]), "shape = '5': give a whole number")
    refused(lambda: nn.ToBEV(low="000"), "low = '000'")
    refused(lambda: nn.ToBEV(axis="z"), "axis = 'z': give a whole number from -4 to 3")


def test_dataflows_are_refused_where_a_layer_is_made() -> None:
    for kind in (nn.SubMConv3d, nn.Conv3d, nn.ConvTranspose3d):
        refused(lambda kind=kind: kind(4, 8, 2, dataflow="gather"), "dataflow = 'gather': choose implicit_gemm, fetch_on_demand")


def test_what_does_not_go_together(x: pumice.SparseTensor) -> None:
    device = x.device
    narrow = x.replace(features=x.features[:, :3])
    flat = pumice.SparseTensor(x.indices[:1, :3], x.features[:1])
    coarse = pumice.SparseTensor(x.indices, x.features, stride=[2, 2, 2])
    two = pumice.SparseTensor(x.indices, x.features, batch_size=2)
    refused(lambda: pumice.collate([x, narrow]), "channels of tensors[1] is 3", "tensors[0] 4")
    refused(lambda: pumice.collate([x, flat]), "dimension of tensors[1] is 2")
    refused(lambda: pumice.collate([x, coarse]), "stride of tensors[1] is (2, 2, 2)")
    refused(lambda: pumice.collate([x, two]), "tensors[1] has a batch_size of 2", "one batch item each")
    other = pumice.SparseTensor(x.indices[1:], x.features[1:, :3])
    refused(lambda: ops.union_add(x, other), "4 and 3 channels", "give as many")
    refused(lambda: x.dense(shape=[9, 9]), "shape = [9, 9]", "each of 3 axes")
    refused(lambda: x.dense(shape=[9] * 3, low=[0]), "low = [0]")
    refused(lambda: pumice.SparseTensor.from_dense(torch.ones(2, device=device)), "dense has shape (2,)")
    refused(lambda: losses.lovasz_softmax(torch.zeros(3), torch.zeros(3)), "scores have shape (3,)")
    refused(lambda: losses.lovasz_softmax(torch.zeros(3, 2), torch.zeros(4)), "truth (4,)")


def test_predictions_out_of_range_are_not_counted_as_others(device: torch.device) -> None:
    confusion = metrics.Confusion(2)
    truth = torch.tensor([0, 0, -1], device=device)
    refused(lambda: confusion.add(truth, truth[1:]), "truth has shape (3,) and predicted (2,)")
    refused(lambda: confusion.add(truth, torch.tensor([0, 3, 0], device=device)), "from 0 to 3", "0 to 1")
    refused(lambda: confusion.add(truth, torch.tensor([-1, 0, 0], device=device)), "from -1 to 0")
    confusion.add(truth, torch.tensor([0, 1, 7], device=device))  # the last one does not count
    assert confusion.matrix.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64])
def test_scores_are_no_mask(x: pumice.SparseTensor, dtype: torch.dtype) -> None:
    scores = torch.ones(len(x), device=x.device, dtype=dtype)
    refused(lambda: ops.prune(x, scores), f"keep is {dtype}, which is no mask: give bool, as scores > 0.5")
    for mask in (scores.real > 2, (scores.real > 2).int()):
        assert len(ops.prune(x, mask)) == 0


@pytest.mark.parametrize(("dtype", "said"), [(torch.float16, "f16"), (torch.bfloat16, "bf16"), (torch.float64, "f64")])
def test_a_linear_layer_says_which_type_it_has(x: pumice.SparseTensor, dtype: torch.dtype, said: str) -> None:
    net = nn.Sequential(nn.Linear(4, 4)).to(x.device)
    given = x.replace(features=x.features.to(dtype))
    refused(lambda: net(given), f"0 (Linear): weight is f32 but the features are {said}: convert one of them")
    if dtype is torch.bfloat16:
        with torch.autocast(x.device.type, torch.bfloat16):
            assert net(given).dtype == dtype


@pytest.mark.parametrize("measure", [pumice.explain, pumice.candidates])
def test_the_name_of_a_network_is_no_network(x: pumice.SparseTensor, measure: Any) -> None:
    refused(lambda: measure("minkunet42", x), "model is a str: give a torch.nn.Module")


def test_a_dense_grid_without_memory_for_it_says_its_size() -> None:
    cells = torch.tensor([[0, 0, 0, 0], [0, 199999, 199999, 199999]], dtype=torch.int32)
    x = pumice.SparseTensor(cells, torch.ones(2, 4))
    said = "a dense grid [1, 4, 200000, 200000, 200000] of torch.float32 takes 1.192e+08 GiB, for which there is no memory: "
    for call in (x.dense, lambda: ops.to_bev(x.features, x.coords, shape=[200000] * 3)):
        refused(call, said, "give shape and low, with crop=True")
    assert x.dense(shape=[2, 2, 2], low=[0, 0, 0], crop=True).sum() == 4


def test_memory_that_there_is_not_is_known_by_the_class_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's sentence is not looked at; errors of classes of their own are no memory of the host."""
    x = pumice.SparseTensor(torch.tensor([[0, 0, 0, 0]], dtype=torch.int32), torch.ones(1, 4))
    failure: list[Exception] = [RuntimeError("cannot get any")]

    def fail(*_: Any) -> None:
        raise failure[0]

    monkeypatch.setattr(pumice._C, "to_dense", fail)
    refused(x.dense, "a dense grid [1, 4, 1, 1, 1] of torch.float32", "for which there is no memory")
    for failure[0] in (torch.OutOfMemoryError("can't allocate memory"), pumice._C.InternalError("can't allocate memory")):
        with pytest.raises(type(failure[0])):
            x.dense()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: data.Rotate("90"), "low, high = '90', 3.14"),  # type: ignore[arg-type]
        (lambda: data.Rotate("90"), "give two numbers, the lower one first"),  # type: ignore[arg-type]
        (lambda: nn.MaxPool(0), "kernel_size = 0: give at least 1"),
        (lambda: nn.AvgPool([2, 0, 2]), "kernel_size = [2, 0, 2]: give at least 1"),
        (lambda: nn.Conv3d(4, 8, 0, 2), "kernel_size = 0: give at least 1"),
    ],
)
def test_the_argument_that_was_given_is_named(call: Callable[[], Any], said: str) -> None:
    refused(call, said)
