"""Coarser coordinates, where releases before 2.1 have them."""

from __future__ import annotations

from .conv.kmap.downsample import spdownsample

__all__ = ["spdownsample"]
