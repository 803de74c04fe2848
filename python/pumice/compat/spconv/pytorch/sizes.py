"""Sizes of outputs."""

from __future__ import annotations

from collections.abc import Sequence

from .... import _C


def get_conv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """kernel_size -1 is one that takes the whole axis: 1 cell comes out."""
    return [
        1 if k == -1 else (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(input_size, kernel_size, stride, padding, dilation)
    ]


def get_deconv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
) -> list[int]:
    """PyTorch's size of a transposed convolution (spconv leaves dilation out)."""
    if any(k < 0 for k in kernel_size):
        raise _C.UserError(
            f"kernel_size = {list(kernel_size)}: a transposed convolution takes positive sizes"
        )
    return [
        (size - 1) * s - 2 * p + d * (k - 1) + 1 + extra
        for size, k, s, p, d, extra in zip(
            input_size, kernel_size, stride, padding, dilation, output_padding
        )
    ]
