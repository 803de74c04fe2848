"""Convolution by a kernel map of tensors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ....... import ops


class GatherScatterConvolutionFuntion:
    """The sum over offsets of input rows times the weight of each. `apply` is differentiable; there is
    nothing to make an instance of."""

    @staticmethod
    def apply(
        input: Tensor,
        weight: Tensor,
        kmap: dict[str, Any],
        config: Any = None,
        transposed: bool = False,
    ) -> Tensor:
        """input [N, C] and weight [K, C, D] to [M, D]; transposed: [M, C] to [N, D], by the map that
        `transpose_kernel_map` has completed."""
        inputs, outputs = kmap["sizes"]
        rows = kmap["out_in_map_t"][:inputs] if transposed else kmap["out_in_map"][:outputs]
        result = input.new_zeros((len(rows), weight.shape[-1]))
        for offset, matrix in enumerate(weight.reshape(-1, *weight.shape[-2:])):
            result = result + ops.take_rows(input, rows[:, offset].contiguous()) @ matrix
        return result


__all__ = ["GatherScatterConvolutionFuntion"]
