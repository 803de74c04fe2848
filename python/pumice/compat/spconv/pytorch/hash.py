"""A table from integers to values, on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from .... import _C


class HashTable:
    """Keys are int32 or int64, values of any one type. Kept sorted, so the order of `items` is that
    of the keys; `max_size` is taken and changes nothing, since the table grows."""

    def __init__(
        self,
        device: torch.device | str,
        key_dtype: torch.dtype,
        value_dtype: torch.dtype,
        max_size: int = -1,
    ) -> None:
        if key_dtype not in (torch.int32, torch.int64):
            raise _C.UserError(f"key_dtype = {key_dtype}: give torch.int32 or torch.int64")
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self._keys = torch.empty(0, dtype=key_dtype, device=device)
        self._values = torch.empty(0, dtype=value_dtype, device=device)

    def insert(self, keys: Tensor, values: Tensor | None = None) -> None:
        """The last of equal keys counts. Without values, new keys get 0 and others keep theirs."""
        keys = keys.to(self.key_dtype)
        if values is None:
            known = self._keys
            values = self._values.new_zeros(len(keys))
            joined = torch.cat([keys, known]), torch.cat([values, self._values])
        else:
            joined = torch.cat([self._keys, keys]), torch.cat([self._values, values])
        unique, row = torch.unique(joined[0], return_inverse=True)
        last = torch.zeros(len(unique), dtype=torch.int64, device=row.device)
        places = torch.arange(len(row), device=row.device)
        last = last.scatter_reduce(0, row, places, "amax")
        self._keys, self._values = unique, joined[1][last]

    def query(self, keys: Tensor, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(values [N], bool [N] where a key is missing; its value is 0, or what `values` held)."""
        at, missing = self._find(keys)
        if values is None:
            values = self._values.new_zeros(len(keys))
        if len(self._keys):
            values.copy_(torch.where(missing, values, self._values[at]))
        return values, missing

    def insert_exist_keys(self, keys: Tensor, values: Tensor) -> Tensor:
        """Changes the values of keys that are there; uint8 [N], 1 where one is not."""
        at, missing = self._find(keys)
        there = (~missing).nonzero()[:, 0]
        self._values[at[there]] = values[there]
        return missing.to(torch.uint8)

    def assign_arange_(self) -> Tensor:
        """Numbers the keys from 0, in the order of `items`; int64 [1], how many there are."""
        self._values = torch.arange(
            len(self._keys), dtype=self.value_dtype, device=self._keys.device
        )
        return self._count()

    def items(self, max_size: int = -1) -> tuple[Tensor, Tensor, Tensor]:
        """(keys, values, int64 [1] how many)."""
        return self._keys.clone(), self._values.clone(), self._count()

    def _count(self) -> Tensor:
        return torch.tensor([len(self._keys)], dtype=torch.int64, device=self._keys.device)

    def _find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        keys = keys.to(self.key_dtype).contiguous()
        if not len(self._keys):
            return torch.zeros_like(keys, dtype=torch.int64), torch.ones_like(keys, dtype=torch.bool)
        at = torch.searchsorted(self._keys, keys).clamp_max(len(self._keys) - 1)
        return at, self._keys[at] != keys
