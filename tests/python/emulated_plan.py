"""Plans of sites and maps on the emulated device (see emulated_device.py): learned from one scan, made again for
others, with the numbers of rows known to the device alone. Run by emulated_device_test.py in a process of its own."""

from __future__ import annotations

import torch
from conftest import random_sites
from emulated_device import OnDevice, raw_allocate, raw_free, same

import pumice
from pumice import _C, nn
from pumice.window import Window

ROOM = 256
MISSING = -(2**31)

center = nn.SubMConv3d(8, 8, 3, bias=False)
down = Window([2] * 3, [2] * 3, [0] * 3, [1] * 3)
weights = [torch.randn(k, cin, cout) / 16 for k, cin, cout in ((27, 8, 8), (8, 8, 16), (27, 16, 16), (8, 16, 8))]
plain = (1, False, False, None, None, None, 0)


def network(features: torch.Tensor, sites: object, place: object) -> tuple[torch.Tensor, object]:
    """Two levels of a U-net, and the sites of the second."""
    w = [place(weight) for weight in weights]
    fine = _C.submanifold_map(sites, center.window.c)
    x = _C.convolution(features, w[0], fine, None, *plain)
    strided = _C.strided_map(sites, down.c, True)
    x = _C.convolution(x, w[1], strided, None, *plain)
    coarse = strided.out_sites
    x = _C.convolution(x, w[2], _C.submanifold_map(coarse, center.window.c), None, *plain)
    return _C.convolution(x, w[3], _C.inverse_map(coarse, down.c, None), None, *plain), coarse


def gradients(features: torch.Tensor, grad: torch.Tensor, sites: object, place: object, rows: int) -> tuple[torch.Tensor, ...]:
    """Of features and weight of a layer on the sites, and of the weight of one that leads to coarser ones, which all
    get a gradient of one; as many rows of features as there are come from either."""
    w = [place(weight) for weight in weights]
    whole = (1, True, False, None, None, True, True, False)
    of_features, of_weight, _ = _C.convolution_gradients(features, w[0], grad, _C.submanifold_map(sites, center.window.c), *whole)
    strided = _C.strided_map(sites, down.c, True)
    ones = torch.ones(strided.out_sites.rows, 16)
    ones[rows:] = float("nan")
    return of_features, of_weight, _C.convolution_gradients(features, w[1], place(ones), strided, *whole)[1]


def of_points() -> None:
    """Voxels of points in numbers that only the device knows, and the network on them."""
    size, box, room = [0.5, 0.4, 0.6], [-2.0, -2.0, -2.0, 2.0, 2.0, 2.0], 300
    clouds = [4 * torch.rand(count, 5) - 2.2 for count in (200, 120, 280, 33, 31, 1, 0)]
    plan = None
    for points in clouds[:2]:
        batch = torch.arange(len(points)).int() % 2
        sites, _ = _C.voxel_sites(OnDevice.of(points), OnDevice.of(batch), size, box, None, 2, None)
        network(OnDevice.of(torch.randn(sites.rows, 8)), sites, OnDevice.of)
        plan = _C.learn_map_plan(sites, ROOM, *sites.bounds, 1.25, plan, room)
    assert plan.capacities[0] == ROOM and room not in plan.capacities

    there = OnDevice.of(torch.full((room, 5), float("nan")))
    items = OnDevice.of(torch.full((room,), -1, dtype=torch.int32))
    count = OnDevice.of(torch.zeros(1, dtype=torch.int64))
    for points in clouds:
        batch = torch.arange(len(points)).int() % 2
        there.host()[: len(points)] = points
        items.host()[: len(points)] = batch
        count.host().fill_(len(points))
        refused = _C.RefusedWaits()
        made, row_of = plan.make_of_points(there, items, count, size, box)
        features = _C.reduce_rows(there, row_of, made.rows, "mean")[0]
        wide = OnDevice.of(torch.cat([features.host(), features.host()[:, :3]], 1))
        output, _ = network(wide, made, OnDevice.of)
        del refused
        _C.wait("cuda:0")
        here, rows = _C.voxel_sites(points, batch, size, box, None, 2, None)
        reduced = _C.reduce_rows(points, rows, here.rows, "mean")[0]
        expected, _ = network(torch.cat([reduced, reduced[:, :3]], 1), here, torch.Tensor.clone)
        assert made.rows == ROOM and not made.host_knows
        same(OnDevice.of(row_of.host()[: len(points)]), rows, "rows of points")
        assert (row_of.host()[len(points) :] == -1).all(), "points that are not in use have no voxel"
        assert torch.equal(features.host()[: here.rows], reduced), "means have other bits"
        same(OnDevice.of(output.host()[: here.rows]), expected, f"network on voxels of {len(points)} points")
    tight = _C.learn_map_plan(sites, sites.rows, *sites.bounds, 1.25, None, room)
    dense = 4 * torch.rand(room, 5) - 2.0
    there.host()[:] = dense
    items.host()[:] = torch.arange(room) % 2
    count.host().fill_(room)
    needed = _C.voxel_sites(dense, items.host().clone(), size, box, None, 2, None)[0].rows
    assert needed > sites.rows
    made, row_of = tight.make_of_points(there, items, count, size, box)
    _C.reduce_rows(there, row_of, made.rows, "mean")  # rows that there are not are left out
    assert raised(lambda: _C.wait("cuda:0"), f"rows: {needed} needed, capacity {sites.rows}")
    count.host().fill_(room + 1)
    made, _ = plan.make_of_points(there, items, count, size, box)
    assert raised(lambda: _C.wait("cuda:0"), "more were needed")
    assert raised(lambda: plan.make_of_points(there, items, items, size, box), "int64 count")
    assert raised(lambda: plan.make_of_points(there, OnDevice.of(torch.zeros(7).int()), count, size, box), "one item for each")
    print("of points", flush=True)


def number(tensor: OnDevice) -> int:
    return int(tensor.host().item())


def main() -> None:
    torch.manual_seed(0)
    _C.use_framework_device(raw_allocate, raw_free, lambda index: 0, lambda: 0, lambda index: None)
    scans = [random_sites(3, 8, count) for count in (120, 60, 180, 1)]
    plan = None
    for cells in scans[:2]:  # the second is learned beside the first
        sites = _C.create_sites(OnDevice.of(cells), None, None, 2, [0] * 3, [7] * 3)
        values = OnDevice.of(torch.randn(len(cells), 8))
        network(values, sites, OnDevice.of)
        gradients(values, values, sites, OnDevice.of, len(cells))
        plan = _C.learn_map_plan(sites, ROOM, [0] * 3, [7] * 3, 1.25, plan, 0)
    assert plan.capacities[0] == ROOM and len(plan.capacities) == 2, plan.capacities
    assert len(set(plan.capacities)) == 2, "two sets have the same room"
    print("learned", flush=True)

    coordinates = OnDevice.of(torch.full((ROOM, 4), MISSING, dtype=torch.int32))
    features = OnDevice.of(torch.full((ROOM, 8), float("nan")))
    grad = OnDevice.of(torch.full((ROOM, 8), float("nan")))
    count = OnDevice.of(torch.zeros(1, dtype=torch.int64))
    trouble = OnDevice.of(torch.full((1,), -1, dtype=torch.int32))

    def fill(cells: torch.Tensor, values: torch.Tensor) -> None:
        coordinates.host()[: len(cells)] = cells
        features.host()[: len(cells)] = values
        count.host().fill_(len(cells))

    for turn in range(2):  # the second plan has the tiles of this room
        for cells in scans:
            values = torch.randn(len(cells), 8)
            fill(cells, values)
            made = plan.make(coordinates, count)
            assert made.rows == ROOM and not made.host_knows
            output, coarse = network(features, made, OnDevice.of)
            here = pumice.Coordinates(cells, batch_size=2).sites
            expected, coarse_here = network(values, here, torch.Tensor.clone)
            rows = OnDevice.of(torch.zeros(1, dtype=torch.int64))
            _C.copy_row_count(made, rows)
            assert number(rows) == len(cells)
            _C.copy_row_count(coarse, rows)
            assert number(rows) == coarse_here.rows
            _C.wait("cuda:0")
            # Their order is the plan's own: rows of the input stay where they are.
            same(OnDevice.of(output.host()[: len(cells)]), expected, f"planned network on {len(cells)} sites")
            assert coarse.rows == plan.capacities[1]
            back = torch.randn(len(cells), 8)
            grad.host()[: len(cells)] = back
            given = gradients(features, grad, made, OnDevice.of, coarse_here.rows)
            wanted = gradients(values, back, here, torch.Tensor.clone, coarse_here.rows)
            same(OnDevice.of(given[0].host()[: len(cells)]), wanted[0], "planned gradient of features")
            for left, right in zip(given[1:], wanted[1:]):
                same(left, right, f"planned gradient of weights on {len(cells)} sites")
            _C.copy_trouble(trouble)
            assert number(trouble) == 0
        plan = _C.learn_map_plan(made, ROOM, [0] * 3, [7] * 3, 1.25, plan, 0)
    assert plan.capacities[0] == ROOM

    cells = scans[0].clone()
    cells[3, 1] = 8
    fill(cells, torch.randn(len(cells), 8))
    made = plan.make(coordinates, count)
    output, _ = network(features, made, OnDevice.of)
    assert raised(lambda: _C.wait("cuda:0"), f"1 of {len(cells)} coordinates lie outside")
    count.host().fill_(ROOM + 1)
    made = plan.make(coordinates, count)
    network(features, made, OnDevice.of)
    _C.copy_trouble(trouble)  # which is known there before anybody waits
    assert raised(lambda: _C.wait("cuda:0"), "more were needed")
    assert number(trouble) != 0
    assert raised(lambda: _C.copy_trouble(count), "to is i64: give int32")
    assert raised(lambda: plan.make(OnDevice.of(torch.zeros(7, 4, dtype=torch.int32)), count), "room for 256")
    assert raised(lambda: plan.make(coordinates, OnDevice.of(torch.zeros(1, dtype=torch.int32))), "int64 count")
    fill(scans[0], torch.randn(len(scans[0]), 8))
    refused = _C.RefusedWaits()
    assert raised(lambda: _C.wait("cuda:0"), "which a graph cannot do")
    made = plan.make(coordinates, count)
    assert raised(lambda: made.copy_to("cpu"), "which a graph cannot do")
    del refused
    _C.wait("cuda:0")
    of_points()
    print("refused", flush=True)


def raised(call: object, part: str) -> bool:
    try:
        call()
    except ValueError as error:
        assert part in str(error), error
        return True
    return False


if __name__ == "__main__":
    main()
