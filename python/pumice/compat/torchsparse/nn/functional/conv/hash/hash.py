"""Hashes of coordinates, where TorchSparse has them a second time."""

from __future__ import annotations

from ...hash import sphash

__all__ = ["sphash"]
