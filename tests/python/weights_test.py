"""Weights to and from files."""

from __future__ import annotations

import pathlib
import warnings

import pytest
import torch

import pumice
from pumice import _checks, models
from pumice.compat import minkowski, spconv, torchsparse


def small() -> torch.nn.Module:
    return pumice.nn.Sequential(
        pumice.nn.SubMConv3d(2, 3, 3, bias=False), pumice.nn.BatchNorm(3), pumice.nn.Linear(3, 2)
    )


def own_network(in_channels: int, classes: int) -> torch.nn.Module:
    """A user's, which has no card."""
    stem, norm = pumice.nn.SubMConv3d(in_channels, 8, 3), pumice.nn.BatchNorm(8)
    return torch.nn.ModuleDict({"stem": stem, "norm": norm, "head": torch.nn.Linear(8, classes)})


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16, torch.float64])
def test_round_trip(tmp_path: pathlib.Path, dtype: torch.dtype | None) -> None:
    path = tmp_path / "weights.safetensors"
    left, right = small(), small()
    pumice.save_weights(left, path, dtype, {"made by": "a test, ü"})
    assert pumice.load_weights(right, path) == {"made by": "a test, ü"}
    for name, value in right.state_dict().items():
        if "num_batches" not in name:
            expected = left.state_dict()[name]
            expected = expected if dtype is None else expected.to(dtype).to(expected.dtype)
            assert torch.equal(value, expected), name
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_all_types_and_sizes(tmp_path: pathlib.Path) -> None:
    values = {
        "none": torch.empty(0, 3),
        "one": torch.tensor(3, dtype=torch.int64),
        "odd": torch.tensor([True, False, True]),
        "after an odd one": torch.arange(5, dtype=torch.float64),
        "turned": torch.arange(6).reshape(2, 3).t(),
    }
    pumice.save_weights(values, tmp_path / "all")
    read, metadata = pumice.read_weights(tmp_path / "all")
    assert metadata == {} and read.keys() == values.keys()
    for name, value in values.items():
        assert read[name].dtype == value.dtype and torch.equal(read[name], value), name


def test_what_does_not_fit_is_named_and_nothing_is_loaded(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "weights.safetensors"
    model = small()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    state = {k: v + 1 for k, v in model.state_dict().items()}
    for change, said in (
        (lambda s: s.pop("2.bias"), "lacks 2.bias"),
        (lambda s: s.update(extra=torch.ones(1)), "has extra"),
        (lambda s: s.update({"1.weight": torch.ones(4)}), r"1.weight has shape \[4\]"),
    ):
        changed = dict(state)
        change(changed)
        pumice.save_weights(changed, path)
        with pytest.raises(pumice.UserError, match=said):
            pumice.load_weights(model, path)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    path.write_bytes(b"something else")
    with pytest.raises(pumice.UserError, match="is not a safetensors file"):
        pumice.read_weights(path)
    torch.save(state, path)
    with pytest.raises(pumice.UserError, match="a file of torch.save"):
        pumice.load_weights(model, path)
    with pytest.raises(pumice.UserError, match="there is no folder"):
        pumice.save_weights(state, tmp_path / "absent" / "a.safetensors")


WIDTHS = [8, 8, 8, 8, 8, 8, 8, 8, 8]
ELSEWHERE = [  # networks of other layers, whose weights have other orders of axes
    lambda ins, outs, make=make: torch.nn.Sequential(make(ins, 8), make(8, outs))
    for make in (
        lambda ins, outs: spconv.SubMConv3d(ins, outs, 3), lambda ins, outs: torchsparse.nn.Conv3d(ins, outs, 3),
        lambda ins, outs: minkowski.MinkowskiConvolution(ins, outs, 3, bias=True, dimension=3),
        lambda ins, outs: torch.nn.Conv2d(ins, outs, 1), lambda ins, outs: torch.nn.ConvTranspose2d(ins, outs, 1),
    )
]  # fmt: skip
ANEW = "; or, to train layer classifier.0 anew, give model.load_state_dict(…, strict=False) what"


@pytest.mark.parametrize("with_card", [True, False])
@pytest.mark.parametrize(
    "there, here, said",
    [
        (models.MinkUNet42(4, 20, WIDTHS), models.MinkUNet42(4, 19, WIDTHS),
         f"has 20 outputs, and the network 19: make it with MinkUNet42(4, 20, widths={WIDTHS}){ANEW}"),
        (models.MinkUNet42(5, 19, WIDTHS), models.MinkUNet42(4, 19, WIDTHS),
         f"has 5 input channels, and the network 4: make it with MinkUNet42(5, 19, widths={WIDTHS})"),
        (models.MinkUNet42(1, 1, WIDTHS), models.MinkUNet42(4, 19, WIDTHS),
         "has 1 input channel and 1 output, and the network 4 and 19: make it with MinkUNet42(1, 1, widths="),
        (models.SPVCNN(4, 20, cr=0.25), models.SPVCNN(4, 19, cr=0.25),
         f"has 20 outputs, and the network 19: make it with SPVCNN(4, 20, cr=0.25){ANEW}"),
        (models.SecondEncoder(5), models.SecondEncoder(4),
         "has 5 input channels, and the network 4: make it with SecondEncoder(5)"),
        (own_network(4, 20), own_network(4, 19),
         "has 20 outputs, and the network 19: make layer head with 20 outputs; or, to train layer head anew, give"),
        (own_network(5, 20), own_network(4, 19),
         "has 5 input channels and 20 outputs, and the network 4 and 19: make layer stem with 5 input channels and "
         "layer head with 20 outputs"),
        (torch.nn.Linear(4, 20), torch.nn.Linear(4, 19),
         "has 20 outputs, and the network 19: make the layer with 20 outputs"),
        (torch.nn.Linear(5, 20), torch.nn.Linear(4, 19),
         "has 5 input channels and 20 outputs, and the network 4 and 19: make the layer with 5 input channels and 20 "
         "outputs"),
        *((make(4, 20), make(4, 19), "has 20 outputs, and the network 19: make layer 1 with 20 outputs; or, to train")
          for make in ELSEWHERE),
        *((make(5, 20), make(4, 20), "has 5 input channels, and the network 4: make layer 0 with 5 input channels")
          for make in ELSEWHERE),
    ],
)  # fmt: skip
def test_a_file_of_other_classes_or_input_channels_says_how_many_and_how_to_make_the_network(
    tmp_path: pathlib.Path, there: torch.nn.Module, here: torch.nn.Module, said: str, with_card: bool
) -> None:
    path = tmp_path / "weights.safetensors"
    pumice.save_weights(there if with_card else there.state_dict(), path)
    with pytest.raises(pumice.UserError) as caught:
        pumice.load_weights(here, path)
    text = str(caught.value)
    assert text.startswith(f"{path} {said}") and "shape" not in text and "\n" not in text


def test_a_network_of_other_layers_is_not_told_of_its_outputs(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "weights.safetensors"
    pumice.save_weights(spconv.SubMConv3d(3, 8, 5), path)
    with pytest.raises(pumice.UserError, match=r"weight has shape \[8, 5, 5, 5, 3\], the network's has \[8, 3,"):
        pumice.load_weights(spconv.SubMConv3d(3, 8, 3), path)
    wide = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Linear(16, 3))
    pumice.save_weights(wide, path)
    narrow = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
    with pytest.raises(pumice.UserError, match=r"0.weight has shape \[16, 4\], the network's has \[8, 4\]$"):
        pumice.load_weights(narrow, path)
    pumice.save_weights(models.MinkUNet42(4, 20, [16] * 9), path)
    with pytest.raises(pumice.UserError, match="it is of a network of widths=16,16,16"):
        pumice.load_weights(models.MinkUNet42(4, 19, WIDTHS), path)


def test_the_weights_without_the_last_layer_are_loaded_as_the_error_says(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "weights.safetensors"
    trained, model = models.MinkUNet42(4, 20, WIDTHS), models.MinkUNet42(4, 19, WIDTHS)
    pumice.save_weights(trained, path)
    tensors, _ = pumice.read_weights(path)
    model.load_state_dict({n: t for n, t in tensors.items() if not n.startswith("classifier.0.")}, strict=False)
    assert torch.equal(model.stem[0].weight, trained.stem[0].weight)


def test_a_file_that_names_other_classes_than_its_network_has_outputs(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "weights.safetensors"
    known = {"network": "minkunet42", "widths": "8,8,8,8,8,8,8,8,8", "voxel_size": "0.1", "classes": "a,b"}
    pumice.save_weights(models.MinkUNet42(4, 3, WIDTHS).state_dict(), path, metadata=known)
    with pytest.raises(pumice.UserError, match="its network has 3 outputs, and its metadata names 2 classes: write"):
        models.pretrained(path)
    pumice.save_weights(models.MinkUNet42(4, 2, WIDTHS).state_dict(), path, metadata=known)
    assert models.pretrained(path).network.in_channels == 4


def test_arguments_in_another_order_are_refused(tmp_path: pathlib.Path) -> None:
    layer, path = pumice.nn.SubMConv3d(2, 3, 3), tmp_path / "layer.safetensors"
    for arguments, said in (
        ((path, layer), "model is a PosixPath: give a module"),
        ((layer, layer), "path is a SubMConv3d"),
        ((layer, path, "float16"), "dtype is a str: give a type, as torch.float16"),
        ((layer, path, {"voxel_size": "0.1"}), "dtype is a dict: give metadata="),
        (({"model": layer.state_dict(), "step": 3}, path), "'model' is an OrderedDict: give a module"),
        ((torch.optim.SGD(layer.parameters(), 0.1).state_dict(), path), "'state' is a dict"),
    ):
        with pytest.raises(pumice.UserError, match=said):
            pumice.save_weights(*arguments)
    assert not path.exists()


def test_another_ending_is_warned_of(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks, "_warned", set())
    with pytest.warns(UserWarning, match="w.txt: weights are written as safetensors, .* name it .safetensors"):
        pumice.save_weights(small(), tmp_path / "w.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("w.safetensors", "w.v2", "w"):
            pumice.save_weights(small(), tmp_path / name)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool])
def test_weights_are_rounded_to_floating_types_only(tmp_path: pathlib.Path, dtype: torch.dtype) -> None:
    with pytest.raises(pumice.UserError, match="give such a type, as torch.float16"):
        pumice.save_weights(small(), tmp_path / "a.safetensors", dtype)
    assert not list(tmp_path.iterdir())
