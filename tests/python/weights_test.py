"""Weights to and from files."""

from __future__ import annotations

import pathlib
import warnings

import pytest
import torch

import pumice
from pumice import _checks


def small() -> torch.nn.Module:
    return pumice.nn.Sequential(
        pumice.nn.SubMConv3d(2, 3, 3, bias=False), pumice.nn.BatchNorm(3), pumice.nn.Linear(3, 2)
    )


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
