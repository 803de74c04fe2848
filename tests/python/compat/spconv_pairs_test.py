"""Tables of pairs and what is computed through them, against loops over sites and dense layers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import agree, at_sites, close, random_sites, working_type

import pumice
import pumice.compat.spconv as spconv
from pumice.compat.spconv.cumm.tensorview.gemm import Activation
from pumice.compat.spconv.pytorch import functional, ops

EXTENT = 6
Native, Mask, Split = spconv.ConvAlgo


def meeting(cell, offset, window, subm, transpose):
    """The output cell that an input meets at an offset, or None: one cell, one axis at a time."""
    size, stride, padding, dilation, shape = window
    result = []
    for axis, place in enumerate(cell):
        step = offset[axis] * dilation
        if subm:
            out = place + size // 2 * dilation - step
        elif transpose:
            out = place * stride - padding + step
        else:
            out, rest = divmod(place + padding - step, stride)
            if rest:
                return None
        if not 0 <= out < shape:
            return None
        result.append(out)
    return tuple(result)


def expected_pairs(indices, window, subm, transpose):
    """(output cells in order, a set of (input row, output cell) for each offset)."""
    rows = [tuple(row) for row in indices.tolist()]
    known, found = set(rows), []
    for offset in itertools.product(range(window[0]), repeat=len(rows[0]) - 1 if rows else 3):
        met = set()
        for number, (item, *cell) in enumerate(rows):
            out = meeting(cell, offset, window, subm, transpose)
            if out is not None and (not subm or (item, *out) in known):
                met.add((number, (item, *out)))
        found.append(met)
    cells = rows if subm else sorted({cell for met in found for _, cell in met})
    return cells, found


KINDS = ["subm", "strided", "transposed"]


def window_of(kind: str, size: int, dilation: int = 1):
    """(arguments of ops, window for the reference)"""
    stride, padding = (1, 0) if kind == "subm" else (2, 1)
    shape = EXTENT
    if kind == "strided":
        shape = (EXTENT + 2 * padding - dilation * (size - 1) - 1) // stride + 1
    if kind == "transposed":
        shape = (EXTENT - 1) * stride - 2 * padding + dilation * (size - 1) + 1
    return (size, stride, padding, dilation, shape), kind == "subm", kind == "transposed"


def arguments(indices, kind, size, dilation=1, algo=Native):
    (size, stride, padding, dilation, _), subm, transpose = window_of(kind, size, dilation)
    axes = indices.shape[1] - 1
    lists = [[n] * axes for n in (size, stride, padding, dilation, 0)]
    return indices, 2, [EXTENT] * axes, algo, *lists, subm, transpose


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension, count", [(1, 8), (2, 31), (3, 0), (3, 1), (3, 33), (4, 40)])
@pytest.mark.parametrize("size, dilation", [(3, 1), (3, 2), (1, 1)])
def test_both_tables_hold_the_pairs_of_a_loop(
    device: torch.device, kind: str, dimension: int, count: int, size: int, dilation: int
) -> None:
    if kind != "subm" and size == 1:
        size = 2
    indices = random_sites(dimension, EXTENT, count).to(device).reshape(-1, dimension + 1)
    cells, expected = expected_pairs(indices, *window_of(kind, size, dilation))
    out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, kind, size, dilation))
    assert out.dtype == pairs.dtype == numbers.dtype == torch.int32
    assert [tuple(row) for row in out.tolist()] == cells
    assert pairs.shape == (2, len(numbers), len(indices))
    if count == 0:
        return
    middle = len(expected) // 2
    for k, met in enumerate(expected):
        wanted = len(met) if kind != "subm" or k < middle else 0
        assert numbers[k] == wanted
        inputs, outputs = pairs[0, k].tolist(), pairs[1, k].tolist()
        assert {(i, cells[o]) for i, o in zip(inputs, outputs) if i >= 0} == met
        assert all(i == o == -1 for i, o in zip(inputs[len(met) :], outputs[len(met) :]))
    result = ops.get_indice_pairs_implicit_gemm(*arguments(indices, kind, size, dilation, Mask))
    assert torch.equal(result[0], out) and not result[1].any()
    forward, backward = result[2].tolist(), result[3].tolist()
    for k, met in enumerate(expected):
        assert {(i, cells[o]) for o, i in enumerate(forward[k]) if i >= 0} == met
        assert {(i, cells[o]) for i, o in enumerate(backward[k]) if o >= 0} == met


@pytest.mark.parametrize("algo, size", [(Mask, 3), (Mask, 5), (Split, 3)])
@pytest.mark.parametrize("kind", ["subm", "strided"])
def test_masks_say_which_offsets_a_row_has(
    device: torch.device, kind: str, algo: spconv.ConvAlgo, size: int
) -> None:
    indices = random_sites(3, EXTENT, 60).to(device)
    result = ops.get_indice_pairs_implicit_gemm(*arguments(indices, kind, size, 1, algo))
    _, _, forward, backward, masks, masks_back, orders, orders_back, filters = result
    assert len(masks) == len(orders) == len(filters) == (2 if algo is Split else 1)
    assert len(masks_back) == len(orders_back) == (0 if kind == "subm" else len(masks))
    for table, words, rows in [(forward, masks, orders), (backward, masks_back, orders_back)]:
        for mask, order, kept in zip(words, rows, filters):
            assert sorted(order.tolist()) == list(range(table.shape[1]))
            numbers = []
            for place, row in enumerate(order.tolist()):
                bits = sum(1 << k for k, met in enumerate((table[:, row] >= 0).tolist()) if met)
                if algo is Split:
                    bits &= int(kept[0])
                held = sum((w % 2**32) << (32 * i) for i, w in enumerate(mask[place].tolist()))
                assert held == bits
                numbers.append(bits)
            assert numbers == sorted(numbers)
    if algo is Split:
        assert int(filters[0][0]) + int(filters[1][0]) == 2**27 - 1


def test_a_bound_keeps_the_first_outputs(device: torch.device) -> None:
    indices = random_sites(3, EXTENT, 60).to(device)
    given = arguments(indices, "strided", 3, 1, Mask)
    whole = ops.get_indice_pairs_implicit_gemm(*given)
    cut = ops.get_indice_pairs_implicit_gemm(*given, num_out_act_bound=10)
    assert torch.equal(cut[0], whole[0][:10]) and torch.equal(cut[2], whole[2][:, :10])
    assert cut[3].max() == 9
    evaluation = ops.get_indice_pairs_implicit_gemm(*given, is_train=False)
    assert evaluation[3].numel() == 0 and evaluation[5] == evaluation[7] == []
    native = arguments(indices, "strided", 3)
    assert len(ops.get_indice_pairs(*native, num_out_act_bound=10)[0]) == len(whole[0])


def dense(indices, features, weight, kind):
    """The layer on a dense grid, at the sites of the table."""
    grid = features.new_zeros((2, *[EXTENT] * 3, features.shape[1]))
    grid = grid.index_put(tuple(indices.long().unbind(1)), features).movedim(-1, 1)
    if kind == "subm":
        return F.conv3d(grid, weight.movedim(-1, 1), padding=1)
    if kind == "strided":
        return F.conv3d(grid, weight.movedim(-1, 1), stride=2, padding=1)
    return F.conv_transpose3d(grid, weight.permute(4, 0, 1, 2, 3), stride=2, padding=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["native", "implicit"])
def test_products_and_gradients_are_those_of_dense_layers(
    device: torch.device, kind: str, form: str
) -> None:
    indices, dtype = random_sites(3, EXTENT, 120).to(device), working_type(device)
    features = torch.randn(len(indices), 4, dtype=dtype).to(device).requires_grad_()
    weight = torch.randn(5, 3, 3, 3, 4, dtype=dtype).to(device).requires_grad_()
    if form == "native":
        out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, kind, 3))
        call = functional.indice_subm_conv if kind == "subm" else functional.indice_conv
        y = call(features, weight, pairs, numbers, len(out), Native)
    else:
        out, _, *tables, filters = ops.get_indice_pairs_implicit_gemm(
            *arguments(indices, kind, 3, 1, Split)
        )
        y = functional.implicit_gemm(
            features, weight, *tables, len(out), filters, True, kind == "subm"
        )
    agree(y, at_sites(dense(indices, features, weight, kind), out), (features, weight), 400)


def test_the_inverse_goes_back_through_the_pairs(device: torch.device) -> None:
    indices, dtype = random_sites(3, EXTENT, 120).to(device), working_type(device)
    out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, "strided", 3))
    features = torch.randn(len(out), 4, dtype=dtype).to(device).requires_grad_()
    weight = torch.randn(5, 3, 3, 3, 4, dtype=dtype).to(device).requires_grad_()
    y = functional.indice_inverse_conv(features, weight, pairs, numbers, len(indices), Native)
    expected = torch.zeros(len(indices), 5, dtype=dtype, device=device)
    for k in range(27):
        for i, o in zip(pairs[0, k].tolist(), pairs[1, k].tolist()):
            if i >= 0:
                row = torch.zeros_like(expected)
                row[i] = 1
                matrix = weight.reshape(5, 27, 4)[:, k]
                expected = expected + row * (matrix @ features[o])
    agree(y, expected, (features, weight), 400)


def test_bias_and_activation_come_last(device: torch.device) -> None:
    indices = random_sites(3, EXTENT, 40).to(device)
    features = torch.randn(len(indices), 4, device=device)
    weight, bias = torch.randn(5, 3, 3, 3, 4, device=device), torch.randn(5, device=device)
    out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, "subm", 3))
    plain = ops.indice_conv(features, weight, pairs, numbers, len(out), subm=True)
    y = ops.indice_conv(
        features, weight, pairs, numbers, len(out), subm=True, bias=bias, act_alpha=0.1,
        act_type=Activation.LeakyReLU,
    )  # fmt: skip
    close(y, F.leaky_relu(plain + bias, 0.1))
    _, _, *tables, filters = ops.get_indice_pairs_implicit_gemm(
        *arguments(indices, "subm", 3, 1, Mask)
    )
    y, tiles, width = ops.implicit_gemm(
        features, weight, tables[0], tables[2], tables[4], len(out), filters, True, True, bias=bias,
        act_type=Activation.ReLU,
    )  # fmt: skip
    torch.testing.assert_close(y, torch.relu(plain + bias), rtol=0, atol=1e-4)
    for tile in range(tiles.shape[1]):
        rows = tables[2][0][tile * width : (tile + 1) * width, 0].tolist()
        assert tiles[0, tile, 0] == np.bitwise_or.reduce(rows)


def test_half_precision_sums_in_whole(device: torch.device) -> None:
    indices = random_sites(3, EXTENT, 120).to(device)
    features = torch.randn(len(indices), 16, device=device)
    weight = torch.randn(16, 3, 3, 3, 16, device=device) * 0.1
    out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, "subm", 3))
    exact = ops.indice_conv(features, weight, pairs, numbers, len(out), subm=True)
    half = ops.indice_conv(
        features.half(), weight.half(), pairs, numbers, len(out), subm=True
    )
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), exact, rtol=0, atol=0.02)
    features.requires_grad_()
    with torch.autocast(device.type, torch.float16):
        y = functional.indice_subm_conv(features, weight, pairs, numbers, len(out), Native)
    assert y.dtype == torch.float16
    y.float().sum().backward()
    assert features.grad.dtype == torch.float32


def test_gradients_are_taken_once(device: torch.device) -> None:
    indices = random_sites(3, EXTENT, 10).to(device)
    features = torch.randn(len(indices), 4, device=device, requires_grad=True)
    weight = torch.randn(5, 3, 3, 3, 4, device=device)
    out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, "subm", 3))
    y = functional.indice_subm_conv(features, weight, pairs, numbers, len(out), Native)
    (grad,) = torch.autograd.grad(y.square().sum(), features, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_pairs_of_a_layer_serve_functions(device: torch.device) -> None:
    indices = random_sites(3, EXTENT, 60).to(device)
    x = spconv.SparseConvTensor(torch.randn(len(indices), 4).to(device), indices, [EXTENT] * 3, 2)
    for layer in (spconv.SubMConv3d(4, 5, 3, bias=False, indice_key="a"),
                  spconv.SparseConv3d(4, 5, 3, 2, 1, bias=False, indice_key="b")):  # fmt: skip
        y = layer.to(device)(x)
        data = y.find_indice_pair(layer.indice_key)
        again = ops.indice_conv(
            x.features, layer.weight, data.indice_pairs, data.indice_pair_num, len(y.indices),
            subm=layer.subm,
        )  # fmt: skip
        torch.testing.assert_close(again, y.features, rtol=0, atol=1e-5)


def test_what_is_wrong_is_named(device: torch.device) -> None:
    indices = random_sites(3, EXTENT, 10).to(device)
    with pytest.raises(AssertionError, match="get_indice_pairs makes Native"):
        ops.get_indice_pairs_implicit_gemm(*arguments(indices, "subm", 3))
    with pytest.raises(AssertionError, match="odd sizes"):
        ops.get_indice_pairs(*arguments(indices, "subm", 2))
    with pytest.raises(AssertionError, match="125 offsets"):
        ops.get_indice_pairs_implicit_gemm(*arguments(indices, "subm", 5, 1, Split))
    with pytest.raises(AssertionError, match="int64"):
        ops.get_indice_pairs(*arguments(indices.long(), "subm", 3))
    with pytest.raises(ValueError, match="gives an output"):
        ops.get_indice_pairs(
            indices, 2, [EXTENT] * 3, Native, [9] * 3, [1] * 3, [0] * 3, [1] * 3, [0] * 3
        )
    out, pairs, numbers = ops.get_indice_pairs(*arguments(indices, "subm", 3))
    with pytest.raises(pumice.UserError, match=r"\[rows, in\]"):
        ops.indice_conv(
            torch.zeros(len(out), 3, device=device), torch.zeros(5, 3, 3, 3, 4, device=device),
            pairs, numbers, len(out),
        )  # fmt: skip


def test_sizes_of_outputs() -> None:
    size = ops.get_conv_output_size
    assert size([13, 7], [-1, 3], [1, 1], [0, 0], [1, 1]) == [1, 5]
    for extent, k, s, p, d in itertools.product([5, 8], [1, 3], [1, 2], [0, 1], [1, 2]):
        grid = torch.zeros(1, 1, extent)
        if extent + 2 * p >= d * (k - 1) + 1:
            wanted = F.conv1d(grid, torch.zeros(1, 1, k), None, s, p, d).shape[-1]
            assert size([extent], [k], [s], [p], [d]) == [wanted]
        wanted = F.conv_transpose1d(grid, torch.zeros(1, 1, k), None, s, p, 0, 1, d).shape[-1]
        assert ops.get_deconv_output_size([extent], [k], [s], [p], [d], [0]) == [wanted]
    with pytest.raises(ValueError, match="positive"):
        ops.get_deconv_output_size([8], [-1], [1], [0], [1], [0])
