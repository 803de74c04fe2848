"""Stands in for open3d where a peer's test reads 1.ply: a room, since that scan is no longer offered."""

from types import SimpleNamespace

import numpy as np


def read_point_cloud(name: str) -> SimpleNamespace:
    """10,000 points of a floor and two walls, 4 m wide, coloured at random."""
    generator = np.random.default_rng(0)
    points = generator.uniform(0, 4, (10000, 3))
    points[np.arange(10000), np.arange(10000) % 3] = 0
    return SimpleNamespace(points=points, colors=generator.uniform(0, 1, (10000, 3)))


io = SimpleNamespace(read_point_cloud=read_point_cloud)
