"""Numbers for every axis, where TorchSparse has them."""

from ..axis_numbers import make_divisible, make_ntuple, make_tensor

__all__ = ["make_divisible", "make_ntuple", "make_tensor"]
