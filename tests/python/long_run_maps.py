"""A network whose outputs are its kernel maps: of features that number the cells, a weight that is the identity puts the
number of the neighbour at each offset into a channel of its own. The same from the cells alone, by a dense grid."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pumice
from pumice import nn

CHANNELS = 16  # of the features: the number of a cell, then zeros
Table = tuple[Tensor, Tensor]  # sites int32 [M, 4] ascending, numbers [M, offsets], 0 where there is no neighbour


def tagged(cells: Tensor) -> Tensor:
    """float32 [N, CHANNELS] with 1, 2, … in the first, which products in float32 keep as they are."""
    features = torch.zeros(len(cells), CHANNELS, device=cells.device)
    features[:, 0] = torch.arange(1, len(cells) + 1, device=cells.device)
    return features


def telling(layer: torch.nn.Module, offsets: int) -> torch.nn.Module:
    """A layer that writes what it reads at offset k into channel k."""
    with torch.no_grad():
        layer.weight.zero_()
        for k in range(offsets):
            layer.weight[k, 0, k] = 1
    return layer


class Tables(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cube = telling(nn.SubMConv3d(CHANNELS, 32, 3, bias=False), 27)
        self.reaching = telling(nn.Conv3d(CHANNELS, 32, 3, stride=2, padding=1, bias=False), 27)
        self.halving = telling(nn.Conv3d(CHANNELS, 16, 2, stride=2, bias=False), 8)
        self.largest = nn.MaxPool(2, 2)
        self.coarse_cube = telling(nn.SubMConv3d(CHANNELS, 32, 3, bias=False), 27)
        self.doubling = telling(nn.InverseConv3d(CHANNELS, 16, 2, stride=2, bias=False), 8)

    def forward(self, x: pumice.SparseTensor) -> dict[str, Any]:
        coarse = self.largest(x)
        return {
            "3x3x3": self.cube(x),
            "3x3x3 with stride 2": self.reaching(x),
            "2x2x2 with stride 2": self.halving(x),
            "3x3x3 on cells of two": self.coarse_cube(coarse),
            "back from cells of two": self.doubling(coarse),
        }


def tables_network() -> torch.nn.Module:
    return Tables()


def offsets_of(name: str) -> int:
    return 27 if name.startswith("3x3x3") else 8


def in_order(sites: Tensor, table: Tensor) -> Table:
    keys = (sites.long() * torch.tensor([1 << 36, 1 << 24, 1 << 12, 1])).sum(1)
    order = keys.argsort()
    return sites[order], table[order]


def tables_of(made: dict[str, Any]) -> dict[str, Table]:
    """What the network gave, on the CPU. Waits."""
    found = {}
    for name, y in made.items():
        exact = y.exact() if isinstance(y, pumice.CapacityTensor) else y
        found[name] = in_order(exact.indices.cpu().int(), exact.features[:, : offsets_of(name)].cpu())
    return found


def expected_tables(cells: Tensor, extent: int) -> dict[str, Table]:
    """The same by a grid that holds the number of each cell, and 0 where there is none."""
    items = int(cells[:, 0].max()) + 1 if len(cells) else 1
    fine = torch.zeros(items, extent, extent, extent)
    fine[tuple(cells.long().T)] = torch.arange(1, len(cells) + 1).float()
    half = extent // 2
    blocks = fine.reshape(items, half, 2, half, 2, half, 2).permute(0, 1, 3, 5, 2, 4, 6).reshape(items, half, half, half, 8)
    coarse = blocks.amax(-1)
    back = torch.zeros(items, extent, extent, extent, 8)
    for k in range(8):
        i, j, m = k // 4, k // 2 % 2, k % 2
        back[:, i::2, j::2, m::2, k] = coarse
    return {
        "3x3x3": at_cells(windows(fine, 1), fine),
        "3x3x3 with stride 2": everywhere(windows(fine, 2)),
        "2x2x2 with stride 2": everywhere(blocks),
        "3x3x3 on cells of two": at_cells(windows(coarse, 1), coarse),
        "back from cells of two": at_cells(back, fine),
    }


def windows(grid: Tensor, stride: int) -> Tensor:
    """[items, …, 27]: what a grid holds around each cell, or each second one."""
    padded = torch.nn.functional.pad(grid, (1, 1, 1, 1, 1, 1))
    n = grid.shape[1]
    return torch.stack(
        [padded[:, i : i + n : stride, j : j + n : stride, k : k + n : stride] for i in range(3) for j in range(3) for k in range(3)], -1
    )


def everywhere(table: Tensor) -> Table:
    """Wherever an input is reached."""
    sites = (table != 0).any(-1).nonzero()
    return sites.int(), table[tuple(sites.T)]


def at_cells(table: Tensor, grid: Tensor) -> Table:
    sites = (grid != 0).nonzero()
    return sites.int(), table[tuple(sites.T)]
