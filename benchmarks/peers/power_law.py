#!/usr/bin/env python3
"""Graphs whose rows and columns have power-law degrees, as tables of sparse products in docs/performance.md have them.

    python benchmarks/peers/power_law.py FOLDER    writes FOLDER/powerlaw_169k.mtx and FOLDER/powerlaw_233k.mtx
"""

import sys
from pathlib import Path

import numpy as np

# Name, nodes, and entries before repeated ones are merged.
SIZES = (("powerlaw_169k", 169_343, 1_166_243), ("powerlaw_233k", 232_965, 11_606_919))


def power_law_graphs(sizes=SIZES):
    """{name: (row [E], column [E], nodes)}, int64, ascending and distinct; the same every time."""
    random = np.random.default_rng(0)
    graphs = {}
    for name, nodes, entries in sizes:
        degree = np.minimum(random.pareto(1.5, nodes) + 1, nodes / 50)
        degree = random.poisson(degree * entries / degree.sum())
        row = np.repeat(np.arange(nodes), degree)
        popular = random.permutation(nodes)
        column = popular[np.minimum((random.pareto(1.2, row.size) * nodes / 50).astype(np.int64), nodes - 1)]
        distinct = np.unique(row * nodes + column)
        graphs[name] = (distinct // nodes, distinct % nodes, nodes)
    return graphs


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (row, column, nodes) in power_law_graphs().items():
        path = folder / f"{name}.mtx"
        with open(path, "w") as file:
            file.write(f"%%MatrixMarket matrix coordinate pattern general\n{nodes} {nodes} {row.size}\n")
            np.savetxt(file, np.stack([row, column], 1) + 1, fmt="%d")
        longest = int(np.bincount(row).max())
        print(f"{path}: {nodes} rows, {row.size} entries, the longest row has {longest}")


if __name__ == "__main__":
    main()
