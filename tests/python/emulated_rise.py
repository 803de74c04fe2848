"""A chain on the emulated device (see emulated_device.py) as layers that wait describe a stage on the way up of a U-net:
back to the finer sites, beside what comes from there, into a residual block whose shortcut is a linear layer. Run by
emulated_device_test.py in a process of its own."""

from __future__ import annotations

import torch
from conftest import random_sites
from emulated_device import OnDevice, enqueued, raw_allocate, raw_free, sites_of

from pumice import _C, nn
from pumice.window import Window

COARSE, FINE, SKIP = 24, 16, 8
down = Window([2] * 3, [2] * 3, [0] * 3, [1] * 3)
# (input, second, residual, ReLU, …) of what leads up, of the shortcut, and of the block.
RISE = (0, -1, -1, True, 1e-5, 0.1)
JOINED = [RISE, (2, 1, -1, False, 1e-3, 0.2), (2, 1, -1, True, 1e-5, 0.1), (4, -1, 3, True, 1e-5, 0.1)]
MATRIX = 1  # the link whose weight lies [out, in]


def maps_on(sites: object) -> tuple[object, ...]:
    strided = _C.strided_map(sites, down.c, True)
    wide, narrow = (_C.submanifold_map(sites, nn.SubMConv3d(8, 8, size).window.c) for size in (3, 1))
    return _C.inverse_map(strided.out_sites, down.c, None), narrow, wide, wide


def main() -> None:
    torch.manual_seed(0)
    _C.use_framework_device(raw_allocate, raw_free, lambda index: 0, lambda: 0, lambda index: None)
    cells = random_sites(3, 8, 120)
    here, there = maps_on(_C.create_sites(cells, None, None, 2, [0] * 3, [7] * 3)), maps_on(sites_of(cells))
    coarse = here[0].in_sites.rows
    given = torch.randn(coarse, COARSE), torch.randn(len(cells), SKIP)
    both = FINE + SKIP
    shapes = [(8, COARSE, FINE), (FINE, both), (27, both, FINE), (27, FINE, FINE)]
    parameters, running = [], []
    for shape in shapes:
        parameters += [torch.randn(*shape) / 4, torch.rand(FINE) + 0.5, torch.randn(FINE)]
        running += [torch.randn(FINE), torch.rand(FINE) + 0.5, torch.tensor(4)]
    matrix = _C.WeightLayout([FINE, 1, both], [1, 2, 0])
    as_it_lies = [*parameters]
    as_it_lies[3 * MATRIX] = parameters[3 * MATRIX].t()[None].contiguous()
    gradient = torch.randn(len(cells), FINE)
    chain = _C.Chain(JOINED)

    def run(place: object, maps: tuple, learned: list, layout: object, dtype: torch.dtype) -> tuple:
        """(results, launches of an inference whose weights are packed and whose maps are cut)"""
        values = [place(value.to(dtype)) for value in given]
        learned, moving = tuple(map(place, learned)), tuple(map(place, running))
        layouts = tuple(layout if link == MATRIX else None for link in range(len(shapes)))
        weights = _C.ChainWeights(chain, values[0], learned, layouts, moving)
        for _ in range(2):
            before = enqueued()
            inferred = _C.chain_inference(*values, chain, maps, weights, False, False)
            launches = enqueued() - before
        call = (*values, chain, maps, learned, layouts)
        output, record = _C.chain_training(*call, moving, False, False, True, True)
        back = _C.chain_gradients(place(gradient.to(dtype)), output, *call, record, False, False, True, True)
        return [inferred, output, *back], launches

    exact, _ = run(torch.Tensor.clone, here, as_it_lies, None, torch.float32)
    of_matrix = 4 + 3 * MATRIX
    exact[of_matrix] = exact[of_matrix][0].t()
    for place, maps, dtype, bound in (
        (torch.Tensor.clone, here, torch.float32, 1e-5),
        (OnDevice.of, there, torch.float32, 2e-5),
        (OnDevice.of, there, torch.float16, 4e-2),  # a ReLU may hide what is near 0, and takes its whole gradient with it
    ):
        made, launches = run(place, maps, parameters, matrix, dtype)
        for index, (mine, expected) in enumerate(zip(made, exact, strict=True)):
            mine = mine.host() if isinstance(mine, OnDevice) else mine
            error = (mine.float() - expected).norm() / expected.norm()
            assert mine.shape == expected.shape and error < bound, f"result {index} in {dtype} is off by {error}"
        if dtype == torch.float16:
            assert launches == 3, f"{launches} launches for what leads up and two convolutions"
    print("a stage on the way up agrees")


if __name__ == "__main__":
    main()
