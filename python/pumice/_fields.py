"""Declares the two fields of a sparse tensor, for operators that make one from another without knowing its
class."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from torch import Tensor

from .coords import Coordinates

if TYPE_CHECKING:
    from typing_extensions import Self


class Fields:
    """The base of `SparseTensor`, whose own `__setattr__` checks what a user writes; operators write a plain
    object of this class and then change its class."""

    __slots__ = ("coords", "features")

    coords: Coordinates
    features: Tensor

    @classmethod
    def _of(cls, coords: Coordinates, features: Tensor) -> Self:
        """One of these fields, unchecked."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.features.shape[0]


Sparse = TypeVar("Sparse", bound=Fields)
