"""Sizes of outputs, and the enumeration that code takes from here."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import AlgoHint, ConvAlgo

__all__ = ["AlgoHint", "ConvAlgo", "get_conv_output_size", "get_deconv_output_size"]


def get_conv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    return [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
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
    return [
        (size - 1) * s - 2 * p + d * (k - 1) + 1 + extra
        for size, k, s, p, d, extra in zip(
            input_size, kernel_size, stride, padding, dilation, output_padding
        )
    ]
