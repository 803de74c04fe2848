"""What code for spconv takes from `cumm`."""

from . import tensorview

__version__ = "0.7.11"
__all__ = ["tensorview"]
