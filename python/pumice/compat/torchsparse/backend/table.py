"""The hash table of TorchSparse's extension, as a sorted list."""

from __future__ import annotations

from typing import Any, overload

import torch
from torch import Tensor

from .... import _C
from ..axis_numbers import make_divisible
from ..nn.functional.hash import of_rows
from ..nn.utils.kernel import get_kernel_offsets

_ROWS = 128  # answers have a multiple of that many


class GPUHashTable:
    """From keys to the row, and one, in which each was inserted; 0 for another key. On any device.

    Args:
        keys: int64 [capacity], zeros at first, and `values` int32 of the same size: where the table is kept,
            for other tables too. Or how many keys there can be, a number.
    """

    dtype = torch.int64

    @overload
    def __init__(self, keys: int) -> None: ...

    @overload
    def __init__(self, keys: Tensor, values: Tensor) -> None: ...

    def __init__(self, keys: Any, values: Tensor | None = None) -> None:
        if isinstance(keys, Tensor):
            if values is None or keys.shape != values.shape or keys.dim() != 1:
                raise _C.UserError("a table is two tensors of one size: give keys [n] and values [n]")
            if keys.dtype != self.dtype or values.dtype != torch.int32:
                raise _C.UserError(
                    f"a table of {keys.dtype} and {values.dtype}: give {self.dtype} and torch.int32"
                )
            self._capacity, self._keys, self._values = len(keys), keys, values
            return
        self._capacity = int(keys)
        self._keys = torch.zeros(0, dtype=self.dtype)
        self._values = torch.zeros(0, dtype=torch.int32)

    def insert_vals(self, keys: Tensor) -> None:
        """keys [n]; of those that are there already, the last is kept. Raises UserError where there are
        more than the capacity, which a GPU is waited for."""
        if len(self._keys) == 0:  # without a device so far
            self._keys = keys.new_zeros(self._capacity, dtype=self.dtype)
            self._values = keys.new_zeros(self._capacity, dtype=torch.int32)
        rows = torch.arange(len(keys), 0, -1, dtype=torch.int32, device=keys.device)
        # Latest first; places without a key hold the value 0 and go to the end.
        all_keys = torch.cat([keys.to(self.dtype).flip(0), self._keys])
        values = torch.cat([rows, self._values])
        order = torch.argsort(values == 0, stable=True)
        order = order[torch.argsort(_ordered(all_keys, values)[order], stable=True)]
        all_keys, values = all_keys[order], values[order]
        repeats = torch.zeros_like(values, dtype=torch.bool)
        repeats[1:] = (all_keys[1:] == all_keys[:-1]) & (values[:-1] != 0)
        values = values.masked_fill(repeats, 0)
        all_keys = _ordered(all_keys, values)
        order = torch.argsort(values == 0, stable=True)
        if bool((values != 0).sum() > self._capacity):
            raise _C.UserError(
                f"the table has room for {self._capacity} keys: give it a larger capacity"
            )
        order = order[: self._capacity]
        self._keys.copy_(all_keys[order])
        self._values.copy_(values[order])

    def lookup_vals(self, keys: Tensor) -> Tensor:
        """int32, as many as the next multiple of 128, of keys [n]."""
        found = keys.new_zeros(make_divisible(len(keys), _ROWS), dtype=torch.int32)
        if self._capacity > 0 and len(self._keys) > 0:
            wanted = keys.to(self.dtype).contiguous()
            ordered = _ordered(self._keys, self._values)
            place = torch.searchsorted(ordered, wanted).clamp_max(self._capacity - 1)
            there = ordered[place] == wanted
            found[: len(keys)] = torch.where(there, self._values[place], 0)
        return found

    def insert_coords(self, coords: Tensor) -> None:
        """coords [n, 4], batch index last."""
        self.insert_vals(self._of(coords))

    def lookup_coords(
        self, coords: Tensor, kernel_sizes: Any, tensor_strides: Any, kernel_volume: int
    ) -> Tensor:
        """int32 [the next multiple of 128, kernel_volume]: of coords [n, 4], batch index last, times the
        stride, moved by each offset of the kernel."""
        offsets = get_kernel_offsets(kernel_sizes, device=coords.device)
        if len(offsets) != int(kernel_volume):
            raise _C.UserError(
                f"kernel_volume = {int(kernel_volume)}: the kernel has {len(offsets)} offsets"
            )
        moved = coords[:, None].repeat(1, len(offsets), 1)
        moved[..., :3] = moved[..., :3] * coords.new_tensor(_numbers(tensor_strides)) + offsets
        found = self.lookup_vals(self._of(moved.reshape(-1, 4)))[: len(coords) * len(offsets)]
        missing = make_divisible(len(coords), _ROWS) - len(coords)
        return torch.nn.functional.pad(found.reshape(len(coords), len(offsets)), (0, 0, 0, missing))

    def _of(self, coords: Tensor) -> Tensor:
        hashes = of_rows(coords.long())
        return hashes.to(self.dtype)


class GPUHashTable32(GPUHashTable):
    """The same of int32 keys. Coordinates have hashes of 32 bits there, which many share: take the other."""

    dtype = torch.int32


def _ordered(keys: Tensor, values: Tensor) -> Tensor:
    """The keys, with the largest number there is where no key is."""
    return keys.masked_fill(values == 0, torch.iinfo(keys.dtype).max)


def _numbers(x: Any) -> list[int]:
    return x.reshape(-1).tolist() if isinstance(x, Tensor) else list(x)
