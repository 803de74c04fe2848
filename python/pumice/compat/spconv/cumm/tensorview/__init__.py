"""What code for spconv takes from `cumm.tensorview`: arrays on the host."""

from __future__ import annotations

import numpy as np

from . import gemm

__all__ = ["Tensor", "empty", "from_numpy", "full", "gemm", "zeros"]


class Tensor:
    """A NumPy array under another name."""

    def __init__(self, array: np.ndarray | None = None) -> None:
        self._array = np.empty(0, dtype=np.float32) if array is None else array

    @property
    def shape(self) -> list[int]:
        return list(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def dim(self, axis: int) -> int:
        return self._array.shape[axis]

    def empty(self) -> bool:
        return self._array.size == 0

    def numpy(self) -> np.ndarray:
        """A copy."""
        return self._array.copy()

    def numpy_view(self) -> np.ndarray:
        """The same memory."""
        return self._array

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype=dtype, copy=True if copy is None else copy)

    def cpu(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return Tensor(self._array.copy())

    def __getitem__(self, index: object) -> Tensor:
        return Tensor(self._array[index])

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"Tensor({self._array!r})"


def from_numpy(array: np.ndarray) -> Tensor:
    """Shares the memory of the array."""
    return Tensor(np.asarray(array))


def zeros(shape: list[int], dtype: type = np.float32) -> Tensor:
    return Tensor(np.zeros(shape, dtype))


def empty(shape: list[int], dtype: type = np.float32) -> Tensor:
    return Tensor(np.empty(shape, dtype))


def full(shape: list[int], value: float, dtype: type = np.float32) -> Tensor:
    return Tensor(np.full(shape, value, dtype))
