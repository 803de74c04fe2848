"""State dicts: spconv's keys and shapes, and the layouts of all its versions."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import pumice.compat.spconv as spconv


def test_keys_and_shapes() -> None:
    net = spconv.SparseSequential(
        spconv.SubMConv3d(4, 16, (1, 3, 5), indice_key="a"),
        spconv.SparseConv3d(16, 32, 2, 2, bias=False, record_voxel_count=True),
        spconv.SparseInverseConv3d(32, 16, 2, "b"),
        conv=spconv.SparseConvTranspose2d(8, 4, 3),
    )
    assert {name: tuple(value.shape) for name, value in net.state_dict().items()} == {
        "0.weight": (16, 1, 3, 5, 4),
        "0.bias": (16,),
        "1.weight": (32, 2, 2, 2, 16),
        "1.max_num_voxels_during_training": (1,),
        "2.weight": (16, 2, 2, 2, 32),
        "2.bias": (16,),
        "conv.weight": (4, 3, 3, 8),
        "conv.bias": (4,),
    }


def test_initial_weights_are_bounded_as_in_spconv() -> None:
    torch.manual_seed(1)
    layer = spconv.SubMConv3d(8, 64, 3)
    bound = 1 / (8 * 27) ** 0.5
    for parameter in (layer.weight, layer.bias):
        assert 0.9 * bound < parameter.abs().max() <= bound


@pytest.mark.parametrize("kernel", [3, (1, 3, 3), 2])
@pytest.mark.parametrize(
    "layout, order", [("RSCK", (1, 2, 3, 4, 0)), ("RSKC", (1, 2, 3, 0, 4)), ("KRSC", (0, 1, 2, 3, 4))]
)
def test_older_layouts_are_told_by_their_shape(kernel: object, layout: str, order: object) -> None:
    layer = spconv.SparseConv3d(4, 6, kernel, bias=False)
    weight = torch.randn_like(layer.weight)
    layer.load_state_dict({"weight": weight.permute(order)})
    assert torch.equal(layer.weight, weight)


@pytest.mark.parametrize("layout, order", [("RSCK", (1, 2, 3, 4, 0)), ("RSKC", (1, 2, 3, 0, 4))])
def test_a_shape_that_does_not_tell_asks(
    monkeypatch: pytest.MonkeyPatch, layout: str, order: object
) -> None:
    net = spconv.SparseSequential(stem=spconv.SubMConv3d(8, 8, 3, bias=False))
    weight = torch.randn_like(net.state_dict()["stem.weight"])
    old = {"stem.weight": weight.permute(order)}
    with pytest.raises(ValueError, match="stem.weight.*SAVED_WEIGHT_LAYOUT"):
        net.load_state_dict(old)
    monkeypatch.setattr(spconv.constants, "SAVED_WEIGHT_LAYOUT", layout)
    net.load_state_dict(old)
    assert torch.equal(net.state_dict()["stem.weight"], weight)


def test_own_state_is_never_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = spconv.SubMConv3d(3, 3, 3)
    monkeypatch.setattr(spconv.constants, "SAVED_WEIGHT_LAYOUT", "RSCK")
    other = spconv.SubMConv3d(3, 3, 3)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.weight, layer.weight)


@pytest.mark.parametrize("old_shape", [(1, 1, 1, 4, 6), (1, 1, 1, 6, 4), (6, 1, 1, 1, 4)])
def test_one_by_one_of_any_version_keeps_its_memory(old_shape: tuple[int, ...]) -> None:
    layer = spconv.SubMConv3d(4, 6, 1, bias=False)
    weight = torch.randn(24)
    layer.load_state_dict({"weight": weight.reshape(old_shape)})
    assert torch.equal(layer.weight.flatten(), weight)
    x = spconv.SparseConvTensor(torch.randn(1, 4), torch.zeros((1, 4)).int(), [3] * 3, 1)
    torch.testing.assert_close(layer(x).features, x.features @ weight.reshape(4, 6))


def test_a_wrong_shape_is_pytorchs_error() -> None:
    layer = spconv.SparseConv3d(4, 6, 3, bias=False)
    with pytest.raises(RuntimeError, match="size mismatch"):
        layer.load_state_dict({"weight": torch.zeros(7, 3, 3, 3, 4)})


def test_code_that_converts_itself_is_left_to_it() -> None:
    class Own(spconv.SparseConv3d):
        def _load_from_state_dict(self, state: dict, prefix: str, *rest: object) -> None:
            for hook in self._load_state_dict_pre_hooks.values():
                hook(state, prefix, *rest)
            assert state[prefix + "weight"].shape == (3, 3, 3, 4, 6)
            state[prefix + "weight"] = state[prefix + "weight"].permute(4, 0, 1, 2, 3)
            super()._load_from_state_dict(state, prefix, *rest)

    layer = Own(4, 6, 3, bias=False)
    weight = torch.randn(3, 3, 3, 4, 6)
    layer.load_state_dict({"weight": weight})
    assert torch.equal(layer.weight, weight.permute(4, 0, 1, 2, 3))


def test_copies_and_pickles() -> None:
    x = spconv.SparseConvTensor(torch.randn(1, 4), torch.zeros((1, 4)).int(), [3] * 3, 1)
    layer = spconv.SubMConv3d(4, 6, 3, indice_key="a").eval()
    with torch.no_grad():
        y = layer(x)
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert torch.equal(other(x).features, y.features)
        again = pickle.loads(pickle.dumps(y))
        assert torch.equal(again.features, y.features) and torch.equal(again.indices, y.indices)
        assert torch.equal(layer(pickle.loads(pickle.dumps(x))).features, y.features)
