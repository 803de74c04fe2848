"""Usual mistakes: a sentence names the layer's path, what was given, and what to do."""

from __future__ import annotations

import copy
import pathlib
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from conftest import random_sites, random_tensor
from mistake_cases import CELLS, ROWS, said, warned_of_nothing_yet, x  # noqa: F401  (two are fixtures)

import pumice
import pumice.compat.minkowski as minkowski
import pumice.compat.spconv.pytorch as spconv
import pumice.compat.torchsparse as torchsparse
from pumice import _checks, models, nn


@pytest.fixture
def flat() -> pumice.SparseTensor:
    """Of sites whose batch column somebody forgot."""
    return pumice.SparseTensor(CELLS[:, 1:], ROWS)


class Net(torch.nn.Module):
    """Layers by hand, in a list, and in a chain."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.SubMConv3d(4, 4, 3)
        self.stages = torch.nn.ModuleList(
            [nn.Sequential(nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4), nn.ReLU(), nn.Linear(4, 4))]
        )

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return x


def test_modules_of_pytorch_in_a_sequential_of_pytorch(x: pumice.SparseTensor) -> None:
    conv = nn.SubMConv3d(4, 8, 3)
    norm = torch.nn.Sequential(conv, torch.nn.BatchNorm1d(8))
    text = said(lambda: norm(x), AttributeError)
    assert text.startswith("1 (torch.nn.BatchNorm1d) takes a tensor, and got a SparseTensor")
    assert "pumice.nn.Sequential" in text and "pumice.nn.BatchNorm" in text
    linear = torch.nn.ModuleDict({"head": torch.nn.Sequential(conv, torch.nn.Linear(8, 2))})
    text = said(lambda: linear["head"](x))
    assert text.startswith("1 (torch.nn.Linear) takes a tensor") and "pumice.nn.Linear" in text
    assert torch.nn.Sequential(conv, torch.nn.ReLU(), nn.BatchNorm(8))(x).shape == (2, 8)


def test_channels_with_the_path(x: pumice.SparseTensor) -> None:
    net = models.MinkUNet42(4, 5, width_factor=0.25)
    wide = x.replace(features=torch.ones(2, 5))
    assert said(lambda: net(wide)) == "stem.0 (SubMConv3d): features have 5 channels, the layer takes 4"
    net.stage2[1].net[3] = nn.SubMConv3d(3, 12, 3, bias=False)
    for training in (True, False):
        assert said(lambda: net.train(training)(x)).startswith("stage2.1.net.3 (SubMConv3d): features have ")
    for layer, path in (
        (nn.Linear(5, 2), "0 (Linear)"),
        (nn.BatchNorm(5), "0 (BatchNorm)"),
        (torch.nn.Linear(5, 2), "0 (torch.nn.Linear)"),
        (torch.nn.BatchNorm1d(5), "0 (torch.nn.BatchNorm1d)"),
    ):
        sequential = nn.Sequential(layer)
        assert said(lambda: sequential(x)) == f"{path}: features have 4 channels, the layer takes 5"
    assert said(lambda: nn.Linear(5, 2)(x)) == "Linear: features have 4 channels, the layer takes 5"


def test_every_layer_that_sees_wrong_channels_is_named() -> None:
    """In any place of a network, in training and evaluation: the path is that of the layer that was broken."""
    x = random_tensor(extent=32, count=300, dtype=torch.float32)
    net = models.MinkUNet42(4, 5, (4, 4, 4, 4, 4, 4, 4, 4, 4))
    layers = {n: m for n, m in net.named_modules() if isinstance(m, nn.Convolution)}
    for index, (name, layer) in enumerate(layers.items()):
        layer.in_channels += 1
        net.train(index % 2 == 0)
        assert said(lambda: net(x)).startswith(f"{name} ({type(layer).__name__}): features have "), name
        layer.in_channels -= 1
    net(x)


def test_types_and_maps_with_the_path(x: pumice.SparseTensor) -> None:
    net = Net()
    assert said(lambda: net(x.half())).startswith("stem (SubMConv3d): weight is f32 but the features are f16")
    up = nn.Sequential(nn.SubMConv3d(4, 4, 3), nn.InverseConv3d(4, 4, 2, 2))
    assert said(lambda: up(x)).startswith("1 (InverseConv3d): no convolution of window")


def test_no_path_is_given_twice_or_to_foreign_errors(x: pumice.SparseTensor) -> None:
    class Breaks(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyError("mine")

    assert said(lambda: nn.Sequential(nn.Sequential(Breaks()))(x), KeyError) == "'mine'"
    inner = nn.Sequential(nn.Sequential(nn.Sequential(nn.SubMConv3d(5, 4, 3))))
    assert said(lambda: inner(x)) == "0.0.0 (SubMConv3d): features have 4 channels, the layer takes 5"


def test_a_missing_batch_column_is_named(flat: pumice.SparseTensor) -> None:
    for call in (
        lambda: Net()(flat),
        lambda: models.MinkUNet42(4, 5, width_factor=0.25)(flat),
        lambda: nn.Sequential(nn.SubMConv3d(4, 4, 3, bias=False), nn.BatchNorm(4))(flat),
        lambda: nn.Conv3d(4, 8, 2, 2)(flat),
    ):
        text = said(call)
        assert "indices are [N, 3]" in text and "the kernel has 3" in text
        assert "batch column is missing" in text and "pad(coords, (1, 0))" in text
    padded = torch.nn.functional.pad(flat.indices, (1, 0))
    Net()(pumice.SparseTensor(padded, flat.features))
    text = said(lambda: nn.SubMConv2d(4, 4, 3)(pumice.SparseTensor(CELLS, ROWS)))
    assert "give indices of 3 columns" in text and "batch column" not in text


def scan(seed: int) -> torch.Tensor:
    return random_sites(3, 200, 500, batch=1, seed=seed)[:, 1:]


def test_a_batch_column_at_the_end_is_warned_of() -> None:
    parts = [torch.nn.functional.pad(scan(item), (0, 1), value=item) for item in range(3)]
    cells = torch.cat(parts)
    with pytest.warns(UserWarning, match=r"counts up from 0 to 2.*roll\(1, 1\)"):
        pumice.SparseTensor(cells, torch.ones(len(cells), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pumice.SparseTensor(cells.roll(1, 1), torch.ones(len(cells), 1))
        many = torch.cat([torch.nn.functional.pad(scan(item), (1, 0), value=item) for item in range(70)])
        pumice.SparseTensor(many, torch.ones(len(many), 1))
        _checks._warned.clear()
        pumice.SparseTensor(cells, torch.ones(len(cells), 1), batch_size=200)


def test_arguments_the_other_way_round(x: pumice.SparseTensor) -> None:
    text = said(lambda: pumice.SparseTensor(ROWS, CELLS))
    assert "the other way round" in text and "SparseTensor(coords, features)" in text
    assert "in this order" in said(lambda: pumice.SparseTensor(ROWS, x.coords))


def test_what_is_no_number_for_an_axis() -> None:
    each = "give a whole number, or one for each of 3 axes"
    assert said(lambda: nn.Conv3d(4, 8, 3, padding="same")) == f"padding = 'same': {each}"  # type: ignore[arg-type]
    assert said(lambda: nn.Conv3d(4, 8, "3")) == f"kernel_size = '3': {each}"  # type: ignore[arg-type]
    assert said(lambda: nn.Conv3d(4, 8, 3, stride=None)) == f"stride = None: {each}"  # type: ignore[arg-type]
    assert said(lambda: nn.MaxPool("2")) == f"kernel_size = '2': {each}"  # type: ignore[arg-type]
    for name, value in (("spatial_shape", 10), ("stride", 0)):
        text = said(lambda: pumice.SparseTensor(CELLS, ROWS, **{name: value}))  # type: ignore[arg-type]
        assert text == f"{name} = {value}: give 3 numbers, one for each axis, as {[value] * 3}"
    points = torch.rand(5, 3)
    text = said(lambda: pumice.voxelize(points, size=0.1, spatial_shape=10))  # type: ignore[call-overload]
    assert text == "spatial_shape = 10: give 3 numbers, one for each axis, as [10, 10, 10]"


def test_words_where_a_layer_takes_something_else() -> None:
    assert "bias = 'no': give True or False" in said(lambda: nn.Conv3d(4, 8, 3, bias="no"))  # type: ignore[arg-type]
    assert "'max', 'average' and 'sum'" in said(lambda: nn.GlobalPool("avg"))
    assert repr(nn.GlobalPool("sum")) == "GlobalPool('sum')"


def test_layers_of_pytorch_for_dense_grids(x: pumice.SparseTensor) -> None:
    theirs = spconv.SparseConvTensor(ROWS, CELLS, [8, 8, 8], 1)
    for layer, remedy in (
        (torch.nn.Conv3d(8, 8, 3), "pumice.nn.Conv3d"),
        (torch.nn.MaxPool3d(2), "pumice.nn.MaxPool"),
        (torch.nn.BatchNorm3d(8), "torch.nn.BatchNorm1d"),
        (torch.nn.AdaptiveAvgPool3d(1), "x.dense()"),
        (torch.nn.Upsample(2), "x.dense()"),
    ):
        for net, given in (
            (nn.Sequential(nn.SubMConv3d(4, 8, 3), layer), x),
            (spconv.SparseSequential(spconv.SubMConv3d(4, 8, 3), layer), theirs),
        ):
            text = said(lambda: net(given))
            assert text.startswith(f"1 (torch.nn.{type(layer).__name__}): it takes a dense grid"), text
            assert remedy in text


def test_a_sum_of_other_channels(x: pumice.SparseTensor) -> None:
    widening = nn.SubMConv3d(4, 8, 3)
    for body in (nn.Sequential(widening), nn.Sequential(widening, nn.BatchNorm(8))):
        for training in (True, False):
            block = torch.nn.ModuleList([nn.Residual(body).train(training)])
            assert said(lambda: block[0](x)).startswith("Residual: the body makes 8 channels and the shortcut 4")
    assert said(lambda: widening(x) + x).startswith("+: the tensors have 8 and 4 channels")
    assert said(lambda: widening(x) - x).startswith("-: the tensors have 8 and 4 channels")


def test_what_a_sparse_tensor_is_not(x: pumice.SparseTensor) -> None:
    assert "x.numpy()" in said(lambda: np.asarray(x))
    points = torch.zeros(1, 4)
    assert "features is a SparseTensor: give x.features" in said(lambda: pumice.ops.interpolate(x, x.coords, points))
    assert "and got an ndarray" in said(lambda: nn.Linear(4, 4)(np.ones((2, 4))))  # type: ignore[arg-type]


def test_torchscript_is_refused() -> None:
    for layer in (nn.SubMConv3d(4, 4, 3), nn.Sequential(nn.SubMConv3d(4, 4, 3))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert "TorchScript have no sparse tensors" in said(lambda: torch.jit.script(layer))


def test_weights_the_other_way_round() -> None:
    text = said(lambda: pumice.load_weights("w.safetensors", nn.Linear(3, 3)))  # type: ignore[arg-type]
    assert text == "model is a str: give load_weights(model, path), a module and then the path"
    assert said(lambda: pumice.read_weights(5)) == "path is an int: give the name of a file"  # type: ignore[arg-type]


def test_a_trained_network_is_an_entry(x: pumice.SparseTensor) -> None:
    trained = models.Pretrained(models.MinkUNet42(4, 2, width_factor=0.25), ("a", "b"), (0.1, 0.1, 0.1), {})
    assert "call trained.network(x)" in said(lambda: trained(x))
    assert "it is trained.network.eval" in said(lambda: trained.eval(), AttributeError)
    assert "has network, classes" in said(lambda: trained.colours, AttributeError)
    assert copy.deepcopy(trained).classes == ("a", "b")


def test_coordinates_of_other_libraries_with_fractions() -> None:
    cells, floats = CELLS.float(), ROWS * 0.5
    convolution = torchsparse.nn.Conv3d(4, 8, 3)
    assert convolution(torchsparse.SparseTensor(ROWS, cells)).F.shape == (2, 8)
    text = said(lambda: convolution(torchsparse.SparseTensor(ROWS, cells + 0.5)))
    assert "with fractions" in text and "coords.floor().int()" in text
    with pytest.warns(UserWarning, match="rounded down, as in MinkowskiEngine"):
        assert torch.equal(minkowski.SparseTensor(ROWS, cells + 0.5).C, CELLS)
    for call in (
        lambda: torchsparse.SparseTensor(CELLS, floats),
        lambda: minkowski.SparseTensor(CELLS, floats),
        lambda: spconv.SparseConvTensor(CELLS, floats, [8, 8, 8], 1),
    ):
        assert "the other way round" in said(call)


def test_without_pytorch_a_sentence_says_what_to_install() -> None:
    for module in ("nn", "compat.spconv", "models", "ops", "data", "losses", "metrics", "weights", "convert"):
        script = f"import sys; sys.modules['torch'] = None; import pumice.{module}"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.stderr.splitlines()[-1].endswith("which is not installed: pip install torch"), module


def test_points_that_are_columns_are_warned_of() -> None:
    points = np.random.default_rng(0).random((3, 300), np.float32)
    for given in (points, torch.from_numpy(points)):
        _checks._warned.clear()
        with pytest.warns(UserWarning, match=r"shape \(3, 300\).*give points.T"):
            pumice.voxelize(given, size=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pumice.voxelize(points.T, size=0.1)
        pumice.voxelize(points[:, :256], size=0.1)


def test_voxels_of_arrays_have_no_tensor() -> None:
    voxels = pumice.voxelize(np.zeros((1, 3)), size=1)
    assert "torch.from_numpy(points)" in said(lambda: voxels.tensor, AttributeError)
    assert said(lambda: voxels.colour, AttributeError) == "Voxels have no 'colour'"
    assert len(copy.deepcopy(voxels)) == 1


def test_functions_of_torch(x: pumice.SparseTensor) -> None:
    assert "pumice.cat" in said(lambda: torch.cat([x, x]))
    assert "pumice.collate" in said(lambda: torch.stack([x, x]))
    assert "x.features" in said(lambda: torch.nn.functional.cross_entropy(x, torch.zeros(2).long()))
    assert "x.features" in said(lambda: torch.softmax(x, 1))
    assert "pumice.nn.Linear" in said(lambda: torch.nn.functional.linear(x, torch.ones(4, 4)))
    assert "x.features.clone" in said(lambda: x.clone(), AttributeError)
    assert not hasattr(x, "size") and "size" not in dir(x) and "features" in dir(x)


def test_elementwise_functions_of_torch_keep_the_sites(x: pumice.SparseTensor) -> None:
    y = x * -0.5
    for call in (torch.relu, torch.sigmoid, torch.nn.functional.silu, torch.nn.ReLU(), torch.nn.GELU(), torch.abs):
        result = call(y)
        assert result.coords is y.coords and torch.equal(result.features, call(y.features))
    assert torch.equal(torch.add(x, y).features, x.features + y.features)
    assert torch.equal(torch.mul(x, 2).features, 2 * x.features)
    dropped = torch.nn.functional.dropout(x, 0.5, training=False)
    assert torch.equal(dropped.features, x.features)


def test_what_is_written_into_a_tensor(x: pumice.SparseTensor) -> None:
    assert "SparseTensor(coords, x.features)" in said(lambda: setattr(x, "coords", CELLS))
    assert "give 2 rows" in said(lambda: setattr(x, "features", ROWS[:1]))
    assert "torch.as_tensor" in said(lambda: setattr(x, "features", [[1.0]]))
    assert "features.float()" in said(lambda: setattr(x, "features", CELLS))
    assert "1 sites for 2 rows" in said(lambda: setattr(x, "coords", pumice.Coordinates(CELLS[:1])))
    assert "follows from" in said(lambda: setattr(x, "stride", (2, 2, 2)), AttributeError)
    assert "keeps coords and features alone" in said(lambda: setattr(x, "colour", 1), AttributeError)
    x.features = ROWS * 3
    assert torch.equal(x.features, ROWS * 3)
    x.coords = pumice.Coordinates(CELLS)


def test_dense_results_without_a_grid(x: pumice.SparseTensor) -> None:
    assert "give shape" in said(lambda: nn.Sequential(nn.ToBEV())(x))
    assert "give shape" in said(lambda: pumice.ops.to_bev(x.features, x.coords))
    assert nn.ToBEV(shape=[8, 8, 8])(x).shape == (1, 32, 8, 8)
    with pytest.warns(UserWarning, match="give dense"):
        nn.ToDense()(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.dense()  # once
        assert nn.ToDense([8, 8, 8])(x).shape == x.dense([8, 8, 8]).shape == (1, 4, 8, 8, 8)


@pytest.mark.parametrize("layer", [nn.SubMConv1d, nn.SubMConv2d, nn.SubMConv3d, nn.SubMConv4d])
def test_arguments_of_other_libraries(layer: Any) -> None:
    name, dimension = layer.__name__, int(layer.__name__[-2])
    assert f"Conv{dimension}d" in said(lambda: layer(4, 8, 3, stride=2))
    assert f"{name}: padding = 0" in said(lambda: layer(4, 8, 3, padding=0))
    assert "leave it out" in said(lambda: layer(4, 8, 3, indice_key="subm1"))
    same = layer(4, 8, 3)
    for options in ({"stride": 1}, {"padding": 1}, {"stride": [1] * dimension, "padding": [1] * dimension}):
        assert layer(4, 8, 3, **options).window == same.window
    assert layer(4, 8, 3, 2, padding=2).window == layer(4, 8, 3, dilation=2).window
    assert layer(4, 8, 5, padding=2).window == layer(4, 8, 5).window
    with pytest.raises(TypeError, match="algo"):
        layer(4, 8, 3, algo=1)


def test_keys_of_other_layers() -> None:
    for layer in (nn.Conv3d, nn.InverseConv3d, nn.ConvTranspose3d):
        assert "indice_key = 'a'" in said(lambda layer=layer: layer(4, 8, 2, 2, indice_key="a"))


def test_negative_padding_is_refused() -> None:
    for make in (nn.Conv3d, nn.GenerativeConvTranspose3d):
        assert "padding = -1" in said(lambda make=make: make(4, 8, 3, padding=-1))
    assert "padding = (0, 0, -1)" in said(lambda: nn.MaxPool(2, padding=(0, 0, -1)))


def test_even_submanifold_kernels_warn_once() -> None:
    with pytest.warns(UserWarning, match="itself is the first") as caught:
        nn.SubMConv3d(4, 8, 2)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.SubMConv3d(4, 8, (2, 3, 3))
        _checks._warned.clear()
        nn.SubMConv3d(4, 8, 3)
        nn.SubMConv3d(4, 8, 1)
        nn.Conv3d(4, 8, 2, 2)


def test_even_kernels_of_other_interfaces_are_silent() -> None:
    import pumice.compat.minkowski as ME
    import pumice.compat.spconv as spconv
    import pumice.compat.torchsparse as torchsparse

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spconv.SparseConv3d(4, 8, 2)
        torchsparse.nn.Conv3d(4, 8, 2)
        ME.MinkowskiConvolution(4, 8, 2, dimension=3)


def test_the_centre_of_an_even_kernel_is_where_the_warning_says() -> None:
    with pytest.warns(UserWarning, match="itself is the first"):
        layer = nn.SubMConv1d(1, 1, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([10.0, 1.0]).reshape(2, 1, 1))
    x = pumice.SparseTensor(torch.tensor([[0, 5], [0, 6]]), torch.tensor([[1.0], [2.0]]))
    assert layer(x).features.flatten().tolist() == [12, 20]


def test_other_things_than_sparse_tensors() -> None:
    points = torch.ones(2, 4)
    for layer in (
        nn.SubMConv3d(4, 8, 3), nn.ReLU(), nn.Linear(4, 4), nn.BatchNorm(4), nn.LayerNorm(4), nn.InstanceNorm(4),
        nn.SyncBatchNorm(4), nn.MaxPool(2), nn.GlobalPool(), nn.ToDense(), nn.ToBEV(), nn.Dropout(),
        nn.OnFeatures(torch.nn.ReLU()),
    ):  # fmt: skip
        text = said(lambda layer=layer: layer(points))
        assert text.startswith(f"{type(layer).__name__} takes a sparse tensor, and got a Tensor"), text
    assert said(lambda: Net()(points)).startswith("stem (SubMConv3d) takes a sparse tensor, and got a Tensor")
    assert "got an ndarray" in said(lambda: models.SPVCNN(cr=0.25)(np.ones((2, 4))))
    assert "got a Tensor" in said(lambda: pumice.explain(nn.Sequential(nn.SubMConv3d(4, 8, 3)), points))
    assert "a scan without labels" in said(lambda: pumice.data.SEMANTIC_KITTI(None))


def test_a_loader_collates_sparse_tensors_by_itself(x: pumice.SparseTensor) -> None:
    loader = torch.utils.data.DataLoader([(x, 1), (x, 2)], batch_size=2)
    batch, labels = next(iter(loader))
    assert batch.batch_size == 2 and torch.equal(batch.indices, pumice.collate([x, x]).indices)
    assert labels.tolist() == [1, 2]


def test_errors_have_the_package_s_name() -> None:
    for kind in (pumice.Error, pumice.UserError, pumice.InternalError):
        assert kind.__module__ == "pumice"
    run = subprocess.run(
        [sys.executable, "-c", "import pumice; pumice.simulate(beams=0)"],
        capture_output=True, text=True, cwd=pathlib.Path(pumice.__file__).parents[1],
    )  # fmt: skip
    assert run.stderr.splitlines()[-1].startswith("pumice.UserError: beams = 0")


def test_what_dir_lists() -> None:
    own = [name for name in dir(pumice) if not name.startswith("__")]
    assert own == sorted(pumice.__all__)
    for module in (nn, pumice.ops, models, pumice.data):
        assert set(module.__all__) <= set(dir(module))


# What people type who come from another library.


def test_all_arguments_of_another_librarys_tensor_in_order() -> None:
    message = said(lambda: pumice.SparseTensor(ROWS, CELLS, [8, 8, 8], 1))  # type: ignore[arg-type]
    assert message == (
        "4 arguments in order: SparseTensor takes (coords, features), and spatial_shape=, batch_size= and stride= by name"
    )


@pytest.mark.parametrize(
    ("where", "name", "remedy"),
    [
        (nn, "SparseConv3d", "nn.Conv3d"),
        (nn, "SparseInverseConv2d", "nn.InverseConv2d"),
        (nn, "MinkowskiConvolution", "nn.Conv3d"),
        (nn, "MaxPool3d", "nn.MaxPool"),
        (nn, "BatchNorm1d", "nn.BatchNorm"),
        (pumice, "SparseConvTensor", "pumice.SparseTensor(coords, features)"),
    ],
)
def test_a_class_by_the_name_that_another_library_has(where: Any, name: str, remedy: str) -> None:
    message = said(lambda: getattr(where, name), AttributeError)
    assert repr(name) in message and f"it is {remedy}" in message and "pumice.compat" in message
    if where is nn:
        assert hasattr(nn, remedy.removeprefix("nn."))


def test_a_name_that_nothing_has() -> None:
    assert said(lambda: nn.Fold, AttributeError) == "module 'pumice.nn' has no attribute 'Fold'"


@pytest.mark.parametrize(
    ("name", "remedy"), [("feats", "x.features"), ("coordinates", "x.indices"), ("replace_feature", "x.replace(features=…)")]
)
def test_an_attribute_by_the_name_that_another_library_has(
    x: pumice.SparseTensor, name: str, remedy: str
) -> None:
    message = said(lambda: getattr(x, name), AttributeError)
    assert message.startswith(f"a SparseTensor has no {name!r}: it is {remedy};")
    assert not hasattr(x, name)


def test_a_factor_where_widths_are_taken() -> None:
    message = said(lambda: models.MinkUNet42(4, 19, 0.25))  # type: ignore[arg-type]
    assert message == "widths = 0.25: give nine numbers or a name; width_factor=0.25 scales them"


def test_a_whole_point_cloud_as_points() -> None:
    message = said(lambda: pumice.voxelize(pumice.simulate(seed=1, beams=32), size=0.1))  # type: ignore[call-overload]
    assert message.startswith("points are a PointCloud: give its columns") and "scan.positions" in message


def test_other_rows_than_there_are_voxels() -> None:
    voxels = pumice.voxelize(torch.tensor([[0.1, 0.2, 0.3], [5.4, 0.2, 0.3]]), size=1.0)
    assert said(lambda: voxels.at_points(torch.ones(3, 2))).startswith("features have 3 rows, and there are 2 voxels: ")


@pytest.mark.parametrize("name", ["net.pth", "net.PT", "net.ckpt"])
def test_weights_under_the_ending_of_a_pickle(tmp_path: pathlib.Path, name: str) -> None:
    message = said(lambda: pumice.save_weights(nn.SubMConv3d(4, 4, 3), tmp_path / name))
    assert name in message and message.endswith("name it .safetensors")
    assert not list(tmp_path.iterdir())


def test_a_sequence_by_the_name_of_its_folder(tmp_path: pathlib.Path) -> None:
    message = said(lambda: pumice.data.SemanticKitti(tmp_path, ["00"]))  # type: ignore[list-item]
    assert message == "sequences = ['00', …]: give their numbers, as [8] for the folder 08"
