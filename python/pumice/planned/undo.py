"""Takes back what was written into tensors, where a number on the device says so."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of a number


class Undo:
    """Copies of tensors, of which there are as many beside the tensors themselves.

    Tensors are treated as whole numbers, old + (new - old) · keep, which is exact and the same for NaN, and takes a few
    launches for all tensors of a width together; torch.where would take one for each."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._tensors: dict[torch.dtype, list[Tensor]] = {}
        seen = set()
        for tensor in tensors:
            if tensor.numel() == 0 or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            plain = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
            whole = _WHOLE[plain.element_size()]
            self._tensors.setdefault(whole, []).append(plain.view(whole))
        self._copies = {whole: [torch.empty_like(tensor) for tensor in some] for whole, some in self._tensors.items()}

    def note(self) -> None:
        """What to go back to: the tensors as they are now."""
        for whole, tensors in self._tensors.items():
            torch._foreach_copy_(self._copies[whole], tensors)

    def take_back(self, flag: Tensor) -> None:
        """Where `flag`, of no dimension, is not 0, tensors are what they were at `note`; else they stay. Does not
        wait."""
        for whole, tensors in self._tensors.items():
            keep = (flag == 0).to(whole)
            torch._foreach_sub_(tensors, self._copies[whole])
            torch._foreach_mul_(tensors, keep)
            torch._foreach_add_(tensors, self._copies[whole])
