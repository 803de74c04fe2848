"""The maps a coordinate manager of MinkowskiEngine hands out, and networks that learn where sites are by them."""

from __future__ import annotations

import itertools

import pytest
import torch
from conftest import random_sites

import pumice
from pumice.compat import minkowski as ME

Pairs = set[tuple[tuple[int, ...], tuple[int, ...]]]


def tensor(device: torch.device, count: int, dimension: int = 2, stride: int = 1) -> ME.SparseTensor:
    cells = random_sites(dimension, 9, count).to(device)
    cells[:, 1:] = (cells[:, 1:] - 5) * stride
    return ME.SparseTensor(torch.ones(len(cells), 1, device=device), cells, tensor_stride=stride)


def offsets(size: list[int], dilation: int, cross: bool) -> list[tuple[int, ...]]:
    if cross:
        both = [(0, 0)]
        for axis, k in enumerate(size):
            both += [(axis, s) for s in (*range(1, k // 2 + 1), *range(-(k // 2), 0))]
        return [tuple(s * dilation * (a == axis) for a in range(len(size))) for axis, s in both]
    ranges = [[(i - (k // 2 if k % 2 else 0)) * dilation for i in range(k)] for k in size]
    return [tuple(reversed(o)) for o in itertools.product(*reversed(ranges))]


@pytest.mark.parametrize("count", [1, 31, 33, 150])
@pytest.mark.parametrize(
    "size, dilation, cross",
    [([3, 3], 1, False), ([2, 2], 1, False), ([3, 2], 2, False), ([5, 3], 1, True), ([1, 1], 1, True)],
)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("finest", [1, 3])
def test_kernel_maps_are_the_pairs_there_are(
    device: torch.device, count: int, size: list[int], dilation: int, cross: bool, transposed: bool, finest: int
) -> None:
    x = tensor(device, count, stride=finest)
    manager = x.coordinate_manager
    coarse_key = manager.stride(x.coordinate_map_key, 2)
    keys = (coarse_key, x.coordinate_map_key) if transposed else (x.coordinate_map_key, coarse_key)
    region = ME.RegionType.HYPER_CROSS if cross else ME.RegionType.HYPER_CUBE
    found = manager.kernel_map(
        *keys, stride=2, kernel_size=size, dilation=dilation, region_type=region, is_transpose=transposed
    )
    fine = {tuple(c): row for row, c in enumerate(x.C.tolist())}
    coarse = manager.get_coordinates(coarse_key).tolist()
    expected: dict[int, set[tuple[int, int]]] = {}
    for number, offset in enumerate(offsets(size, dilation, cross)):
        for row, (item, *cell) in enumerate(coarse):
            there = fine.get((item, *(v + o * finest for v, o in zip(cell, offset))))
            if there is not None:
                pair = (row, there) if transposed else (there, row)
                expected.setdefault(number, set()).add(pair)
    assert found.keys() == expected.keys()
    for number, pairs in found.items():
        assert pairs.dtype == torch.int32 and pairs.device.type == device.type
        assert pairs.shape == (2, len(expected[number]))
        assert set(zip(*pairs.tolist())) == expected[number]


def test_a_kernel_map_between_strides_is_that_of_the_layer(device: torch.device) -> None:
    """1 and 2 name the first keys of these strides."""
    x = tensor(device, 100)
    layer = ME.MinkowskiConvolution(1, 1, 3, 2, dimension=2).to(device)
    y = layer(x)
    total = torch.zeros(len(y), 1, device=device)
    for number, pairs in x.coordinate_manager.kernel_map(1, 2, stride=2, kernel_size=3).items():
        source, target = pairs.long()
        total = total.index_add(0, target, x.F[source] @ layer.kernel[number])
    torch.testing.assert_close(total, y.F, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 33, 150])
def test_stride_maps(device: torch.device, count: int) -> None:
    x = tensor(device, count)
    manager = x.coordinate_manager
    key = manager.stride(x.coordinate_map_key, [2, 3])
    fine, coarse = manager.stride_map(x.coordinate_map_key, key)
    assert torch.equal(fine, torch.arange(len(x), device=device))
    there = manager.get_coordinates(key)[coarse]
    steps = x.C.new_tensor([2, 3])
    assert torch.equal(there[:, 1:], torch.div(x.C[:, 1:], steps, rounding_mode="floor") * steps)
    pooled = manager.kernel_map(x.coordinate_map_key, key, stride=[2, 3], kernel_size=[2, 3], is_pool=True)
    back = manager.kernel_map(
        key, x.coordinate_map_key, stride=[2, 3], kernel_size=[2, 3], is_pool=True, is_transpose=True
    )
    if count == 0:
        assert pooled == back == {}
        return
    assert torch.equal(pooled[0], torch.stack([fine, coarse]).int())
    assert torch.equal(back[0], torch.stack([coarse, fine]).int())


def test_origin_maps_keep_items_without_rows(device: torch.device) -> None:
    cells = torch.tensor([[0, 0], [2, 2], [0, 1], [2, 0], [0, 2]], dtype=torch.int32, device=device)
    x = ME.SparseTensor(torch.ones(5, 1, device=device), cells)
    items, rows = x.coordinate_manager.origin_map(x.coordinate_map_key)
    assert items.tolist() == [0, 1, 2]
    assert [part.tolist() for part in rows] == [[0, 2, 4], [], [1, 3]]
    assert x.coordinate_manager.number_of_unique_batch_indices() == 3


def test_errors(device: torch.device) -> None:
    x = tensor(device, 30)
    manager, key = x.coordinate_manager, x.coordinate_map_key
    coarse = manager.stride(key, 2)
    for text, call in {
        "no coordinates have stride \\[8, 8\\]": lambda: manager.kernel_map(8, key),
        "give sizes from 1": lambda: manager.kernel_map(key, key, kernel_size=0),
        "odd ones of a HYPER_CROSS": lambda: manager.kernel_map(key, key, kernel_size=2, region_type=1),
        "whose stride the other one's divides": lambda: manager.stride_map(coarse, key),
        "are in no site of the strided key": lambda: manager.stride_map(
            key, tensor_elsewhere(manager, device).coordinate_map_key
        ),
    }.items():
        with pytest.raises(pumice.UserError, match=text):
            call()
        with pytest.raises(AssertionError):
            call()


def tensor_elsewhere(manager: ME.CoordinateManager, device: torch.device) -> ME.SparseTensor:
    cell = torch.tensor([[0, 400, 400]], dtype=torch.int32, device=device)
    return ME.SparseTensor(
        torch.ones(1, 1, device=device), cell, tensor_stride=2, coordinate_manager=manager
    )


class Grower(torch.nn.Module):
    """Grows sites from one cell of 16 and keeps, on every level, those where it says the target has some; in
    training those of the target too, which MinkowskiEngine's own generative networks look up so."""

    def __init__(self) -> None:
        super().__init__()
        self.grow = torch.nn.ModuleList(
            torch.nn.Sequential(
                ME.MinkowskiGenerativeConvolutionTranspose(8, 8, kernel_size=2, stride=2, dimension=3),
                ME.MinkowskiBatchNorm(8), ME.MinkowskiELU(),
                ME.MinkowskiConvolution(8, 8, kernel_size=3, dimension=3), ME.MinkowskiELU(),
            )
            for _ in range(4)
        )
        self.says = torch.nn.ModuleList(
            ME.MinkowskiConvolution(8, 1, kernel_size=1, bias=True, dimension=3) for _ in range(4)
        )
        self.pruning = ME.MinkowskiPruning()

    def forward(
        self, x: ME.SparseTensor, target_key: ME.CoordinateMapKey
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], ME.SparseTensor]:
        said, targets = [], []
        for grow, says in zip(self.grow, self.says):
            x = grow(x)
            manager = x.coordinate_manager
            strided = manager.stride(target_key, x.tensor_stride[0])
            target = torch.zeros(len(x), dtype=torch.bool, device=x.device)
            for pairs in manager.kernel_map(
                x.coordinate_map_key, strided, kernel_size=1, region_type=1
            ).values():
                target[pairs[0].long()] = 1
            said.append(says(x).F[:, 0])
            targets.append(target)
            keep = said[-1] > 0
            if self.training:
                keep += target
            if bool(keep.any()):
                x = self.pruning(x, keep)
        return said, targets, x


def test_a_generative_network_learns_where_sites_are(device: torch.device) -> None:
    wanted = random_sites(3, 16, 60, batch=1, seed=3).to(device)
    net = Grower().to(device)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    start = torch.zeros((1, 4), dtype=torch.int32, device=device)
    for _ in range(150):
        x = ME.SparseTensor(torch.ones(1, 8, device=device), start, tensor_stride=16)
        key, _ = x.coordinate_manager.insert_and_map(wanted, string_id="target")
        said, targets, _ = net(x, key)
        loss = sum(
            torch.nn.functional.binary_cross_entropy_with_logits(s, t.float()) for s, t in zip(said, targets)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert all(int(target.sum()) > 0 for target in targets)
    assert int(targets[-1].sum()) == len(wanted)
    wrong = sum(int(((s > 0) != t).sum()) for s, t in zip(said, targets))
    assert wrong == 0, (wrong, loss.item())
