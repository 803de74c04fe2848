"""Hashes, tables, kernel maps as tensors and the rest of what code takes from TorchSparse's extension:
against dictionaries and loops."""

from __future__ import annotations

import pytest
import torch
from conftest import agree, close, random_sites, working_type
from torchsparse_state import switches

import pumice
from pumice.compat.foreign import PeerAssertionError
from pumice.compat.torchsparse import SparseTensor, backend, utils
from pumice.compat.torchsparse import nn as spnn
from pumice.compat.torchsparse.nn import functional as F
from pumice.compat.torchsparse.utils import tensor_cache

SIZES = [0, 1, 31, 33, 128, 200]


def fnv(row: list[int], folded: bool) -> int:
    """FNV-1a of four numbers of 32 bits, in Python's integers."""
    value = 14695981039346656037
    for number in row:
        value = (value ^ (number % 2**32)) * 1099511628211 % 2**64
    if folded:
        value = (value >> 60) ^ (value % 2**60)
    return value - 2**64 if value >= 2**63 else value


@pytest.mark.parametrize("release, folded", [("1.4", True), ("2.1", False)])
def test_hashes_are_those_of_torchsparse(device: torch.device, release: str, folded: bool) -> None:
    rows = torch.randint(-(2**31), 2**31, (50, 4)).int()
    rows[:20] = torch.randint(-5, 50, (20, 4)).int()
    offsets = torch.randint(-2, 3, (3, 3)).int()
    with switches(release):
        found = F.sphash(rows.to(device))
        moved = F.sphash(rows[:20].to(device), offsets.to(device))
    assert found.tolist() == [fnv(row, folded) for row in rows.tolist()]
    first = 1 if release == "2.1" else 0
    for offset, hashes in zip(offsets.tolist(), moved.tolist()):
        there = rows[:20].clone()
        there[:, first : first + 3] += torch.tensor(offset, dtype=torch.int32)
        assert hashes == [fnv(row, folded) for row in there.tolist()]
    for wrong in (rows.float(), rows[:, :3], rows[0]):
        with pytest.raises(PeerAssertionError, match="give int32 \\[rows, 4\\]"):
            F.sphash(wrong)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", [backend.GPUHashTable, backend.GPUHashTable32])
def test_a_table_of_numbers(device: torch.device, count: int, kind: type) -> None:
    pool = torch.randperm(1000)[: 2 * count] - 300
    pool[:1] = torch.iinfo(kind.dtype).max  # which is no mark of an empty place
    keys, others = pool[:count].to(kind.dtype).to(device), pool[count:].to(kind.dtype).to(device)
    known = {key: row + 1 for row, key in enumerate(keys.tolist())}
    memory = keys.new_zeros(2 * count), keys.new_zeros(2 * count, dtype=torch.int32)
    for table in (kind(2 * count), kind(*memory)):
        table.insert_vals(keys)
        wanted = torch.cat([others, keys.flip(0), keys.new_zeros(1)])
        found = table.lookup_vals(wanted)
        assert found.dtype == torch.int32 and len(found) == -(-len(wanted) // 128) * 128
        assert found[: len(wanted)].tolist() == [known.get(key, 0) for key in wanted.tolist()]
        assert not found[len(wanted) :].any()
    other = kind(*memory)  # finds what is kept there
    assert torch.equal(other.lookup_vals(keys), table.lookup_vals(keys))


def test_a_table_keeps_what_was_inserted_last_and_has_an_end(device: torch.device) -> None:
    table = backend.GPUHashTable(3)
    table.insert_vals(torch.tensor([7, 8, 7], device=device))
    assert table.lookup_vals(torch.tensor([7, 8, 9], device=device))[:3].tolist() == [3, 2, 0]
    table.insert_vals(torch.tensor([9, 8], device=device))
    assert table.lookup_vals(torch.tensor([7, 8, 9], device=device))[:3].tolist() == [3, 2, 1]
    with pytest.raises(pumice.UserError, match="room for 3 keys: give it a larger capacity"):
        table.insert_vals(torch.tensor([1], device=device))
    with pytest.raises(pumice.UserError, match="give torch.int64 and torch.int32"):
        backend.GPUHashTable(torch.zeros(4), torch.zeros(4).int())
    with pytest.raises(pumice.UserError, match="two tensors of one size"):
        backend.GPUHashTable(torch.zeros(4).long(), torch.zeros(3).int())


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("size", [1, 2, 3, (1, 3, 1), (2, 1, 2)])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_table_of_coordinates(device: torch.device, count: int, size: object, stride: int) -> None:
    """Batch index last, and the offsets of a kernel in TorchSparse's order."""
    inserted = random_sites(3, 9, count)[:, [1, 2, 3, 0]] - torch.tensor([4, 4, 4, 0]).int()
    asked = inserted[: max(1, len(inserted) // 2)] // stride
    sizes, steps = utils.make_ntuple(size, 3), (stride,) * 3
    table = backend.GPUHashTable(2 * max(1, len(inserted)))
    table.insert_coords(inserted.to(device))
    offsets = spnn.utils.get_kernel_offsets(size)
    wanted = torch.tensor(sizes).int().to(device), torch.tensor(steps).int().to(device)
    found = table.lookup_coords(asked.to(device), *wanted, len(offsets))
    assert found.shape == (-(-len(asked) // 128) * 128, len(offsets))
    rows = {tuple(cell): row + 1 for row, cell in enumerate(inserted.tolist())}
    expected = [
        [rows.get((*((torch.tensor(cell[:3]) * stride + offset).tolist()), cell[3]), 0) for offset in offsets]
        for cell in asked.tolist()
    ]
    assert found[: len(asked)].tolist() == expected
    with pytest.raises(pumice.UserError, match="kernel_volume = 99"):
        table.lookup_coords(asked.to(device), *wanted, 99)


def test_functions_of_the_extension(device: torch.device) -> None:
    queries, references = torch.tensor([5, 6, 9], device=device), torch.tensor([6, 5], device=device)
    found = backend.hash_query_cuda(queries, references, torch.tensor([10, 20], device=device))
    assert found.tolist() == [21, 11, 0]
    assert backend.hash_query_cpu(queries, references[:0], references[:0]).tolist() == [0, 0, 0]
    index = torch.tensor([0, 2, 2, -1], device=device)
    counts = backend.count_cuda(index, 3)
    assert counts.tolist() == [1, 0, 2]
    rows = torch.randn(4, 3, device=device)
    means = backend.voxelize_forward_cuda(rows, index, counts)
    close(means, torch.stack([rows[0], 0 * rows[0], (rows[1] + rows[2]) / 2]))
    back = backend.voxelize_backward_cuda(means, index, counts, 4)
    close(back, torch.stack([means[0], means[2] / 2, means[2] / 2, 0 * means[0]]))
    corners = torch.randint(-1, 4, (6, 8), device=device).int()
    shares = torch.rand(6, 8, device=device)
    matrix = torch.zeros(6, 4, device=device)
    for point, corner in (corners >= 0).nonzero().tolist():
        matrix[point, corners[point, corner]] += shares[point, corner]
    close(backend.devoxelize_forward_cuda(rows, corners, shares), matrix @ rows, 8)
    grad = torch.randn(6, 3, device=device)
    close(backend.devoxelize_backward_cuda(grad, corners, shares, 4), matrix.T @ grad, 8)


@pytest.mark.parametrize("count", [0, 1, 31, 33])
def test_to_dense(device: torch.device, count: int) -> None:
    cells = random_sites(3, 5, count).to(device)
    rows = torch.randn(len(cells), 2, dtype=working_type(device)).to(device).requires_grad_()
    expected = rows.new_zeros((2, 5, 6, 7, 2)).index_put(tuple(cells.long().unbind(1)), rows)
    dense = utils.to_dense(rows, cells, (2, 5, 6, 7))
    agree(dense, expected, (rows,), 1)
    grid = torch.zeros_like(dense)
    backend.to_dense_forward_cuda(rows, cells, torch.tensor([2, 5, 6, 7]), grid)
    assert torch.equal(grid, dense)
    back = torch.zeros_like(rows)
    backend.to_dense_backward_cuda(grid, cells, torch.tensor([2, 5, 6, 7]), back)
    assert torch.equal(back, rows)
    if count > 1:
        with pytest.raises(pumice.UserError):
            utils.to_dense(rows, cells, (2, 2, 2, 2))
            pumice._C.wait(str(device))  # where a device says it


# Of "hashmap" those whose sites and windows agree in TorchSparse.
KERNELS = [
    ("hashmap", 1, 2, 0), ("hashmap", 2, 1, 0), ("hashmap", 2, 2, 0), ("hashmap", 3, 1, 1),
    ("hashmap", 3, 2, 1), ("hashmap", 3, 3, 0), ("hashmap_on_the_fly", 1, 2, 0),
    ("hashmap_on_the_fly", 2, 1, 0), ("hashmap_on_the_fly", 2, 2, 0), ("hashmap_on_the_fly", 3, 1, 1),
    ("hashmap_on_the_fly", 3, 2, 1), ("hashmap_on_the_fly", 3, 2, 0),
    ("hashmap_on_the_fly", (1, 3, 2), (1, 2, 2), 0),
]  # fmt: skip


@pytest.mark.parametrize("mode, size, stride, padding", KERNELS)
def test_kernel_maps_of_tensors_convolve_as_layers(
    device: torch.device, mode: str, size: object, stride: object, padding: int
) -> None:
    """There and back."""
    with switches("2.1"):
        cells = random_sites(3, 9, 150).to(device)
        rows = torch.randn(len(cells), 3, dtype=working_type(device)).to(device).requires_grad_()
        extents = (2, 9, 9, 9) if mode == "hashmap_on_the_fly" else None
        config = F.conv_config.get_default_conv_config().copy()
        config.kmap_mode = mode
        volume = len(spnn.utils.get_kernel_offsets(size))
        weight = torch.randn(volume, 3, 4, dtype=rows.dtype).to(device).requires_grad_()
        x = SparseTensor(rows, cells, spatial_range=extents)
        y = F.conv3d(x, weight, size, None, stride, padding, config=config)
        kmap = F.build_kernel_map(cells, len(cells), size, stride, padding, spatial_range=extents, mode=mode)
        assert kmap["sizes"] == (len(x), len(y))
        assert stride == 1 or kmap["spatial_range"] == y.spatial_range
        assert kmap["out_in_map"].shape[0] % 128 == 0 and kmap["out_in_map"].dtype == torch.int32
        assert int(kmap["nbsizes"].sum()) == len(kmap["nbmaps"]) == int((kmap["out_in_map"] >= 0).sum())
        place = {tuple(cell): row for row, cell in enumerate(kmap["coords"].tolist())}
        order = torch.tensor([place[tuple(cell)] for cell in y.coords.tolist()], device=device)
        result = F.conv.func.ImplicitGEMMConvolutionFuntion.apply(rows, weight, kmap, config, False)
        agree(result[order], y.feats, (rows, weight), 100)
        back_weight = torch.randn(volume, 4, 2, dtype=rows.dtype).to(device)
        turned = F.transpose_kernel_map(kmap)
        back = F.conv.func.GatherScatterConvolutionFuntion.apply(result, back_weight, turned, config, True)
        expected = rows.new_zeros((len(rows), 2))
        for output, maps in enumerate(kmap["out_in_map"][: len(y)].tolist()):
            for offset, row in enumerate(maps):
                if row >= 0:
                    expected[row] += (result[output] @ back_weight[offset]).detach()
        close(back.detach(), expected, 300)


def test_generative_maps_and_what_there_is_not() -> None:
    cells = torch.tensor([[0, 0, 0, 0], [0, 2, 2, 2]], dtype=torch.int32)
    with switches("2.1"):
        kmap = F.build_kernel_map(cells, 2, 2, 2, spatial_range=(1, 8, 8, 8), generative=True)
        assert kmap["coords"][0].tolist() == [0, 0, 0, 0] and int(kmap["coords"].max()) == 3
        finer = F.spupsample_generative(cells, 2, 3, spatial_range=(1, 4, 4, 4))
        assert torch.equal(finer, finer.unique(dim=0)) and int(finer.max()) == 3 and int(finer.min()) == 0
        with pytest.raises(PeerAssertionError, match="spatial_range = None"):
            F.spupsample_generative(cells, 2, 3)
        with pytest.raises(ValueError, match="mode = 'grid'"):
            F.build_kernel_map(cells, 2, mode="grid")
        with pytest.raises(PeerAssertionError, match="downsample_mode = 'other'"):
            F.spdownsample(cells, downsample_mode="other")
        for call, match in (
            (lambda: F.set_kmap_mode("grid"), "kmap_mode = 'grid'"),
            (lambda: F.set_downsample_mode("x"), "downsample_mode = 'x'"),
            (lambda: F.set_conv_mode(3), "conv_mode = 3"),
            (lambda: tensor_cache.set_tensor_cache_mode(1), "give a TensorCacheMode"),
            (lambda: utils.make_ntuple((1, 2), 3), "give one number, or 3"),
        ):
            with pytest.raises(PeerAssertionError, match=match):
                call()


def test_a_cache_of_all_tensors(device: torch.device) -> None:
    modes = tensor_cache.TensorCacheMode
    cells = random_sites(3, 8, 40).to(device)
    rows = torch.randn(len(cells), 2, device=device)
    tensor_cache.set_tensor_cache_mode(modes.GLOBAL_TENSOR_CACHE)
    try:
        assert tensor_cache.get_tensor_cache_mode() is modes.GLOBAL_TENSOR_CACHE
        x, other = SparseTensor(rows, cells), SparseTensor(rows, cells)
        assert x._caches is other._caches is tensor_cache.get_global_tensor_cache()
        down, up = spnn.Conv3d(2, 2, 2, 2).to(device), spnn.Conv3d(2, 2, 2, 2, transposed=True).to(device)
        y = down(x)
        again = SparseTensor(y.feats, y.coords, y.stride)  # which hands nothing on by itself
        assert torch.equal(up(again).coords, cells)
        tensor_cache.clear_global_tensor_cache()
        assert SparseTensor(rows, cells)._caches is not x._caches
    finally:
        tensor_cache.set_tensor_cache_mode(modes.SEPARATE_TENSOR_CACHE)
        tensor_cache.clear_global_tensor_cache()
    assert SparseTensor(rows, cells)._caches is not SparseTensor(rows, cells)._caches


def test_small_helpers() -> None:
    assert utils.make_divisible(129, 128) == 256 and utils.make_divisible(128, 128) == 128
    assert utils.make_tensor((1, 2), torch.int32, "cpu").tolist() == [1, 2]
    rows = torch.randint(-3, 4, (60, 3)).numpy()
    hashes = utils.quantize.ravel_hash(rows)
    for left in range(0, 60, 7):
        for right in range(60):
            same, before = tuple(rows[left]) == tuple(rows[right]), tuple(rows[left]) < tuple(rows[right])
            assert (hashes[left] == hashes[right]) == same and (hashes[left] < hashes[right]) == before
    assert len(utils.quantize.ravel_hash(rows[:0])) == 0
    with pytest.raises(PeerAssertionError, match="one size, or one for each axis"):
        utils.quantize.sparse_quantize(rows, (1.0, 2.0))
    one, two = (SparseTensor(torch.ones(1, 1), torch.zeros(1, 3), stride) for stride in (1, 2))
    with pytest.raises(AssertionError, match="give equal ones"):
        utils.collate.sparse_collate([one, two])


def test_weights_of_points_in_2_1(device: torch.device) -> None:
    """A row for each point, and x, y, z first: against the product of distances."""
    points = torch.rand(40, 3, device=device) * 8 - 4
    found = torch.randint(-1, 5, (40, 8), device=device).int()
    with switches("2.1"):
        weights = F.calc_ti_weights(points, found, scale=2)
    for row in range(40):
        base = torch.floor(points[row] / 2)
        expected = []
        for corner in range(8):
            step = torch.tensor([corner >> 2, corner >> 1 & 1, corner & 1], device=device)
            expected.append((1 - (points[row] / 2 - base - step).abs()).prod() * (found[row, corner] >= 0))
        total = torch.stack(expected)
        torch.testing.assert_close(weights[row], total / (total.sum() + 1e-8), rtol=1e-4, atol=1e-5)
    with switches("2.1"), pytest.raises(pumice.UserError, match=r"give \(40, 8\), or choose the release"):
        F.calc_ti_weights(points, found.T)


def test_unions_are_sorted(device: torch.device) -> None:
    cells = random_sites(3, 6, 60).to(device)
    rows = torch.randn(len(cells), 2, dtype=working_type(device)).to(device).requires_grad_()
    a, b = SparseTensor(rows[:40], cells[:40]), SparseTensor(rows[20:], cells[20:])
    total = pumice.compat.torchsparse.generative_add(a, b)
    assert torch.equal(total.coords, cells.unique(dim=0))
    dense = rows.new_zeros((2, 6, 6, 6, 2))
    for part in (a, b):
        dense = dense.index_put(tuple(part.coords.long().unbind(1)), part.feats, accumulate=True)
    agree(total.feats, dense[tuple(total.coords.long().unbind(1))], (rows,), 2)
    b.stride = (2, 2, 2)
    with pytest.raises(pumice.UserError, match="give equal ones"):
        pumice.compat.torchsparse.generative_add(a, b)


def test_a_union_of_the_same_coordinates_keeps_their_rows(device: torch.device) -> None:
    """Of one matrix, and of equal ones: as labels of points go with the rows that were given."""
    cells = random_sites(3, 6, 60).to(device)
    assert not torch.equal(cells, cells.unique(dim=0))
    rows = torch.randn(len(cells), 2, dtype=working_type(device)).to(device)
    a = SparseTensor(rows, cells)
    ranged = SparseTensor(rows, cells, spatial_range=(2, 6, 6, 6))
    for b in (SparseTensor(2 * rows, cells), SparseTensor(2 * rows, cells.clone()), ranged):
        total = pumice.compat.torchsparse.generative_add(a, b)
        assert total.coords is cells
        torch.testing.assert_close(total.feats, a.feats + b.feats)
    turned = SparseTensor(rows.flip(0), cells.flip(0))  # equal as sets only
    total = pumice.compat.torchsparse.generative_add(a, turned)
    assert torch.equal(total.coords, cells.unique(dim=0))
